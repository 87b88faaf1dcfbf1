/** OpenAPI descriptions of routes that submit a request and answer with its result. */
import { overloaded } from '../http/api-error.ts';
import { commonErrors, describeErrorAnswer, exampleId } from './api-route.ts';
import { submitErrors } from './submit-document.ts';
import { endedWithoutResult } from '../answer/stored-request-error.ts';

export const requestIdHeader = {
  'X-Request-Id': {
    description: 'The id of the request, for the routes of `/v1/predict/{id}`.',
    schema: { type: 'string' as const, example: exampleId },
  },
};

/** Returns the descriptions of their errors besides 400; `output` names the expected result. */
export function answerErrors(output: 'image' | 'text') {
  return {
    ...submitErrors,
    422: {
      ...describeErrorAnswer(
        `The request was stored but returned no ${output}: it failed, was canceled or expired (\`request_expired\`), or the server is ` +
          'stopping (`server_stopping`) and the request continues. Sending it again creates a new request.',
        endedWithoutResult(exampleId, 'failed', {
          code: 'worker_lost',
          message: 'The workers that ran this request were lost.',
        }),
      ),
      headers: {
        ...requestIdHeader,
        'X-Should-Retry': {
          description:
            'For the SDKs: `false`, or `true` if the server is stopping and the client sent an `Idempotency-Key`.',
          schema: { type: 'string' as const },
        },
      },
    },
    500: {
      ...commonErrors[500],
      description: 'Internal server error. Nothing is stored; the log has the details under the same id.',
    },
    503: describeErrorAnswer('See `POST /v1/predict`. Nothing is stored.', overloaded()),
  };
}
