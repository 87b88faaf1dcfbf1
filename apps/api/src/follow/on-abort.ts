/**
 * Calls `listener` when one of the signals aborts, at once if one has. Returns a function that removes the listener.
 */
export function onAbort(signals: readonly AbortSignal[], listener: () => void): () => void {
  if (signals.some(({ aborted }) => aborted)) listener();
  for (const signal of signals) signal.addEventListener('abort', listener);
  return () => {
    for (const signal of signals) signal.removeEventListener('abort', listener);
  };
}
