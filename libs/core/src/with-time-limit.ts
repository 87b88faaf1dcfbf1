/**
 * Runs `act` with a time limit, and until a signal aborts. Uses neither `AbortSignal.timeout` (on Node 20 it is garbage
 * collected if only `AbortSignal.any` refers to it, and never fires) nor `AbortSignal.any` (its listeners live as long
 * as the outer signal).
 *
 * @param limitMs after this time the signal passed to `act` aborts with a `TimeoutError`.
 * @param signal also aborts it, with its own reason, until `act` is done.
 */
export async function withTimeLimit<Result>(
  limitMs: number,
  signal: AbortSignal,
  act: (both: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const both = new AbortController();
  const timer = setTimeout(() => both.abort(new DOMException('it took too long', 'TimeoutError')), limitMs);
  const abort = (): void => both.abort(signal.reason);
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await act(both.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
