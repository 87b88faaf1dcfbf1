/** A connection error or a failure of the hub; a retry may help. */
export class BrokenConnectionError extends Error {
  /** Delay that the hub requests (Retry-After), ms. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { retryAfterMs, cause }: { retryAfterMs?: number | undefined; cause?: unknown } = {}) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Wraps an error of `fetch` with the message of its innermost cause, since `fetch failed` alone says nothing.
 *
 * @param what happened, such as `the connection broke`.
 */
export function brokenConnection(what: string, error: unknown): BrokenConnectionError {
  if (error instanceof BrokenConnectionError) return error;
  let reason: unknown = error;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  const { code, message } = reason as { code?: string; message?: string };
  return new BrokenConnectionError(`${what} (${message || code || String(reason)})`, { cause: error });
}
