import type { ClientContext } from './client-context.ts';
import { isAnswerLost } from './client-error.ts';
import type { PictureRequest } from './picture-request.ts';
import type { AcceptedRequest } from './request-view.ts';
import { retrying } from './retrying.ts';
import { readJson } from './read-body.ts';
import { send } from './send.ts';

export interface SubmitOptions {
  /** Two submits of the same key and request are one. Default: drawn anew for each call. */
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Tried again when the answer got lost: the key makes all tries one request. A refusal (503, 429) is thrown at once. */
export function submitRequest(
  context: ClientContext,
  request: PictureRequest,
  { idempotencyKey = randomKey(), signal }: SubmitOptions,
): Promise<AcceptedRequest> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': idempotencyKey };
  const body = JSON.stringify(request);
  const attempt = async (): Promise<AcceptedRequest> => {
    const response = await send(context, '/v1/predict', { method: 'POST', headers, body, signal });
    return readJson<AcceptedRequest>(context, response, signal);
  };
  return retrying(context, signal, attempt, isAnswerLost);
}

/** 128 random bits. `crypto.randomUUID` is not there on pages without TLS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
