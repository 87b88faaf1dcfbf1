/**
 * Answers to a client whose request is stored and who gets nothing of it. SDKs send a POST again after 408, 409, 429 and
 * every 5xx, and that would be a second request: so it is 422, whoever's fault it is, with the header by which the SDKs
 * of OpenAI are told not to. Only what the engine found wrong with the request itself is a 400, as it is at the door.
 */
import type { ErrorCode, RequestError, TerminalState } from '@darkroom/core';
import { ApiError, type ApiErrorOptions, toApiError } from '../http/api-error.ts';
import { requestUrls } from '../http/urls.ts';

const neverAgain = { 'X-Should-Retry': 'false' };
const sendAgain = { 'X-Should-Retry': 'true', 'Retry-After': '1' };

function storedError(
  code: string,
  message: string,
  options: Pick<ApiErrorOptions, 'headers' | 'cause'> = {},
): ApiError {
  return new ApiError(422, code, message, { type: 'generation_error', headers: neverAgain, ...options });
}

/** Of ends that the request itself is to blame for. */
const refusalCodes: ReadonlySet<string> = new Set<ErrorCode>(['invalid_request', 'content_policy_violation']);

/** The request has ended without a result. */
export function endedWithoutResult(id: string, state: TerminalState, error: RequestError | undefined): ApiError {
  switch (state) {
    case 'failed':
      if (error !== undefined && refusalCodes.has(error.code)) return refusedByEngine(error);
      return storedError(error?.code ?? 'failed', `Request ${id} failed: ${error?.message ?? 'nobody knows why.'}`);
    case 'expired':
      return storedError('request_expired', `Request ${id} was not done in its time.`);
    case 'canceled':
      return storedError('request_canceled', `Request ${id} was canceled.`);
    case 'succeeded':
      return storedError('request_gone', `The results of request ${id} are no longer kept.`);
  }
}

function refusedByEngine({ code, message }: RequestError): ApiError {
  return new ApiError(400, code, message, { headers: neverAgain });
}

/** This process stops. A client with an Idempotency-Key is sent on: it finds the same request at the next replica. */
export function serverStopping(id: string, hasKey: boolean): ApiError {
  const { self } = requestUrls(id);
  const how = hasKey
    ? `Send it again with the same key, or fetch it at ${self}.`
    : `Fetch it at ${self}, do not send it again.`;
  const message = `The server stops; request ${id} goes on. ${how}`;
  return storedError('server_stopping', message, { headers: hasKey ? sendAgain : neverAgain });
}

/** A stream cannot take back what it has sent, and a rerun wrote something else. */
export function textChanged(id: string): ApiError {
  const message = `Request ${id} was run again and wrote another text than the one that was sent. Fetch it at ${requestUrls(id).self}.`;
  return storedError('text_changed', message);
}

/** Its time is over, and nobody has noticed: Redis is away, or no janitor runs. */
export function endUnknown(id: string): ApiError {
  const message = `Nothing is known of the end of request ${id}. Look at ${requestUrls(id).self}, do not send it again.`;
  return storedError('end_unknown', message);
}

/** Whatever went wrong after the request was stored. */
export function toStoredError(error: unknown, errorId: string): ApiError {
  if (error instanceof ApiError && 'X-Should-Retry' in error.headers) return error;
  const { code, message } = toApiError(error, errorId);
  return storedError(code, message, { cause: error });
}
