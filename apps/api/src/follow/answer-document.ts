/** How routes that take a request in and answer with what came of it stand in the OpenAPI document. */
import { overloaded } from '../http/api-error.ts';
import { commonErrors, errorAnswer, exampleId } from '../http/api-route.ts';
import { submitErrors } from '../submit/submit-document.ts';
import { endedWithoutResult } from './stored-request-error.ts';

export const requestIdHeader = {
  'X-Request-Id': {
    description: 'The id of the request, which all routes of `/v1/predict/{id}` take.',
    schema: { type: 'string' as const, example: exampleId },
  },
};

/** What they may answer besides the result and 400; `output`: what the client waits for. */
export function answerErrors(output: 'picture' | 'text') {
  return {
    ...submitErrors,
    422: {
      ...errorAnswer(
        `The request was stored, and there is no ${output}: it failed, was canceled or \`request_expired\`, or the server stops ` +
          '(`server_stopping`) and the request goes on. Sending it again makes a new one.',
        endedWithoutResult(exampleId, 'failed', {
          code: 'worker_lost',
          message: 'The workers that ran this request were lost.',
        }),
      ),
      headers: {
        ...requestIdHeader,
        'X-Should-Retry': {
          description: 'For the SDKs: `false`, or `true` for a client with an `Idempotency-Key` whose server stops.',
          schema: { type: 'string' as const },
        },
      },
    },
    500: { ...commonErrors[500], description: 'A fault on our side. Nothing is stored; the id is in the log too.' },
    503: errorAnswer('As of `POST /v1/predict`. Nothing is stored.', overloaded()),
  };
}
