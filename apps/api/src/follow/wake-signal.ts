/** Lets one sleeper be woken by many. A wake while nobody sleeps is kept for the next sleep. */
export function createWakeSignal() {
  let isWoken = false;
  let resolve: (() => void) | undefined;
  return {
    wake: (): void => {
      if (resolve === undefined) isWoken = true;
      else resolve();
      resolve = undefined;
    },
    /** Resolves when there was a wake since the last one that was waited for. */
    woken: (): Promise<void> => {
      const wasWoken = isWoken;
      isWoken = false;
      return wasWoken ? Promise.resolve() : new Promise((done) => (resolve = done));
    },
  };
}

/** Calls `listener` when one of them is aborted, at once if one is. Ends when what it returns is called. */
export function onAbort(signals: readonly AbortSignal[], listener: () => void): () => void {
  if (signals.some(({ aborted }) => aborted)) listener();
  for (const signal of signals) signal.addEventListener('abort', listener);
  return () => {
    for (const signal of signals) signal.removeEventListener('abort', listener);
  };
}
