/** The calls that are answered as a whole; {@link streamRequest} follows the others. */
import type { AcceptedRequest, CanceledRequest, EndedRequest, Model, RequestView } from './answers.ts';
import { isEnded } from './answers.ts';
import { ClientError, isAnswerLost } from './client-error.ts';
import { retrying, sendForJson } from './http.ts';
import type { Call } from './options.ts';
import type { PictureRequest } from './picture-request.ts';

/** Seconds for which `wait` leaves a connection silent: many proxies cut it after 30 or 60. */
const longPollS = 25;
/** Seconds between polls when the server names none. */
const pollEveryS = 1;

/** Path of a request below the client's `baseUrl`. */
export function requestPath(id: string): string {
  return `/v1/predict/${encodeURIComponent(id)}`;
}

/** All models the API knows. */
export async function listModels(call: Call): Promise<Model[]> {
  const { body } = await retrying(call, () => sendForJson<{ data: Model[] }>(call, '/v1/models'));
  return body.data;
}

/** Tried again when the answer got lost: the key makes all tries one request. A refusal (503, 429) is thrown at once. */
export async function submitRequest(
  call: Call,
  request: PictureRequest,
  idempotencyKey: string = randomKey(),
): Promise<AcceptedRequest> {
  const options = {
    method: 'POST' as const,
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify(request),
  };
  const attempt = () => sendForJson<AcceptedRequest>(call, '/v1/predict', options);
  return (await retrying(call, attempt, isAnswerLost)).body;
}

/** 128 random bits. `crypto.randomUUID` is not there on pages without TLS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Where the request is. */
export async function getRequest(call: Call, id: string): Promise<RequestView> {
  return (await retrying(call, () => sendForJson<RequestView>(call, requestPath(id)))).body;
}

/** The request when it has ended: long polls, which bring neither previews nor pictures. */
export async function awaitEnd(call: Call, id: string): Promise<EndedRequest> {
  const path = requestPath(id);
  for (;;) {
    const { body, retryAfterS = pollEveryS } = await retrying(call, (failures) =>
      // Something in between may have less patience than this one; then short polls do the same soon enough.
      failures > 0
        ? sendForJson<RequestView>(call, path)
        : sendForJson<RequestView>(call, `${path}?wait=${longPollS}`, { heldBackMs: longPollS * 1000 }),
    );
    if (isEnded(body)) return body;
    await call.delay(retryAfterS * 1000, call.signal);
  }
}

/** Canceling twice is canceling once, so a lost answer is asked for again; a 409 then may be our own doing. */
export async function cancelRequest(call: Call, id: string): Promise<CanceledRequest> {
  let tries = 0;
  try {
    const { body } = await retrying(call, (failures) => {
      tries = failures + 1;
      return sendForJson<CanceledRequest>(call, requestPath(id), { method: 'DELETE' });
    });
    return body;
  } catch (error) {
    if (tries === 1 || !(error instanceof ClientError) || error.status !== 409) throw error;
    const { status } = await getRequest(call, id);
    if (status === 'canceled') return { request_id: id, status };
    throw error;
  }
}
