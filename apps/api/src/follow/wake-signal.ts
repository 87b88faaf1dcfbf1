/** Lets one sleeper be woken by many. A wake while nobody sleeps is kept for the next sleep. */
export function createWakeSignal() {
  let isWoken = false;
  let resolve: (() => void) | undefined;
  return {
    wake: (): void => {
      isWoken = true;
      resolve?.();
    },
    /** Resolves when there was a wake since the last one that was waited for. */
    woken: async (): Promise<void> => {
      if (!isWoken)
        await new Promise<void>((done) => {
          resolve = done;
        });
      resolve = undefined;
      isWoken = false;
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
