/**
 * Does what may take so long only, and what may be given up before.
 *
 * Not by `AbortSignal.timeout`: on Node 20 garbage collection takes such a signal along where only `AbortSignal.any` holds it, and
 * then it never fires. A timer holds its own. Nor by `AbortSignal.any`: it keeps what still listens for as long as the other signal
 * lives, which is as long as the process as a rule.
 *
 * @param limitMs after which the signal that `act` gets aborts, with a `TimeoutError`.
 * @param signal aborts it too, with its own reason, until `act` is done.
 */
export async function within<Result>(
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
