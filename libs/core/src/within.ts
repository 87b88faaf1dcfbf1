/**
 * Does what may take so long only, and what may be given up before.
 *
 * Not by `AbortSignal.timeout`: on Node 20 garbage collection takes such a signal along where only `AbortSignal.any` holds it, and
 * then it never fires. A timer holds its own.
 *
 * @param limitMs after which the signal that `act` gets aborts, with a `TimeoutError`.
 * @param signal aborts it too, with its own reason.
 */
export async function within<Result>(
  limitMs: number,
  signal: AbortSignal,
  act: (both: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new DOMException('it took too long', 'TimeoutError')), limitMs);
  try {
    return await act(AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}
