import { DarkroomError } from '@darkroom/core';

type UpstreamErrorCode = 'invalid_request' | 'unavailable' | 'model_unsupported';

/**
 * Failure of an upstream server. `invalid_request`: this request's fault, shown to the client. `unavailable`:
 * transient, the request can be retried. `model_unsupported`: needs an operator (wrong kind of server, or rejected
 * key).
 */
export class UpstreamError extends DarkroomError {
  declare readonly code: UpstreamErrorCode;
  /** Delay before a retry makes sense, ms. */
  readonly retryAfterMs: number;
  /** The server is running but overloaded. */
  readonly isBusy: boolean;

  constructor(
    code: UpstreamErrorCode,
    message: string,
    { retryAfterMs = 0, isBusy = false, cause }: { retryAfterMs?: number; isBusy?: boolean; cause?: unknown } = {},
  ) {
    super(code, 'executor.upstream', message, cause);
    this.name = 'UpstreamError';
    this.retryAfterMs = retryAfterMs;
    this.isBusy = isBusy;
  }
}

/** Creates a retryable error; the server's name is prepended to the message later. */
export function unavailable(message: string, cause?: unknown): UpstreamError {
  return new UpstreamError('unavailable', message, { cause });
}
