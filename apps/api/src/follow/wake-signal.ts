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
