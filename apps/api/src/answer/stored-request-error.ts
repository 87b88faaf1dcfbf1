/**
 * Errors after a request was stored. SDKs retry a POST after 408, 409, 429 and 5xx, which would submit a second
 * request; so the status is 422, with `X-Should-Retry: false` for OpenAI's SDKs. Input that the engine rejects is a
 * 400, as in request validation.
 */
import type { ErrorCode, RequestError, TerminalState } from '@darkroom/core';
import { ApiError, type ApiErrorOptions, toApiError } from '../http/api-error.ts';

const neverAgain = { 'X-Should-Retry': 'false' };
const sendAgain = { 'X-Should-Retry': 'true', 'Retry-After': '1' };

function storedError(
  code: string,
  message: string,
  options: Pick<ApiErrorOptions, 'headers' | 'cause'> = {},
): ApiError {
  return new ApiError(422, code, message, { type: 'generation_error', headers: neverAgain, ...options });
}

/** Error codes of requests whose input was rejected by the engine. */
const refusalCodes: ReadonlySet<string> = new Set<ErrorCode>(['invalid_request', 'content_policy_violation']);

/** Returns the error for a request that ended without a result, or whose results have expired. */
export function endedWithoutResult(id: string, state: TerminalState, error: RequestError | undefined): ApiError {
  switch (state) {
    case 'failed':
      if (error !== undefined && refusalCodes.has(error.code)) return refusedByEngine(error);
      return storedError(error?.code ?? 'failed', `Request ${id} failed: ${error?.message ?? 'unknown reason.'}`);
    case 'expired':
      return storedError('request_expired', `Request ${id} expired at its deadline.`);
    case 'canceled':
      return storedError('request_canceled', `Request ${id} was canceled.`);
    case 'succeeded':
      return storedError('request_gone', `The results of request ${id} have expired.`);
  }
}

function refusedByEngine({ code, message }: RequestError): ApiError {
  return new ApiError(400, code, message, { headers: neverAgain });
}

/** Returns the error for a server that stops. A client with an Idempotency-Key may retry: it finds the same request. */
export function serverStopping(id: string, hasKey: boolean): ApiError {
  const how = hasKey
    ? 'Send it again with the same key, or fetch it by its id.'
    : 'Fetch it by its id, do not send it again.';
  const message = `The server is stopping; request ${id} continues. ${how}`;
  return storedError('server_stopping', message, { headers: hasKey ? sendAgain : neverAgain });
}

/** Returns the error for a stream whose request was rerun and produced a different text than the part already sent. */
export function textChanged(id: string): ApiError {
  const message = `Request ${id} was rerun and produced a different text than the part already sent. Fetch it by its id.`;
  return storedError('text_changed', message);
}

/** Returns the error for a request past its deadline without an end: Redis is unavailable, or no janitor runs. */
export function endUnknown(id: string): ApiError {
  const message = `The end of request ${id} could not be read. Poll it by its id, do not send it again.`;
  return storedError('end_unknown', message);
}

/** Converts any error after the request was stored into one that SDKs do not retry. */
export function toStoredError(error: unknown, errorId: string): ApiError {
  if (error instanceof ApiError && 'X-Should-Retry' in error.headers) return error;
  const { code, message } = toApiError(error, errorId);
  return storedError(code, message, { cause: error });
}
