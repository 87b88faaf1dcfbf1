/** A failure of the way to the hub, or of the hub: trying again may help. */
export class BrokenConnectionError extends Error {
  /** How long the hub wants to be left alone. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { retryAfterMs, cause }: { retryAfterMs?: number | undefined; cause?: unknown } = {}) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Why `fetch` failed, without its wrapping: `fetch failed` says nothing, its cause does.
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
