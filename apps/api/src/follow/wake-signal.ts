/** Lets one sleeper be woken by many. A wake while nobody sleeps is kept for the next sleep. */
export interface WakeSignal {
  readonly wake: () => void;
  /** Resolves when there was a wake since the last one that was waited for. */
  readonly woken: () => Promise<void>;
}

export function createWakeSignal(): WakeSignal {
  let isWoken = false;
  let resolve: (() => void) | undefined;
  return {
    wake() {
      isWoken = true;
      resolve?.();
    },
    async woken() {
      if (!isWoken)
        await new Promise<void>((done) => {
          resolve = done;
        });
      resolve = undefined;
      isWoken = false;
    },
  };
}
