export interface PollerOptions {
  intervalMs: number;
  /** Resolves to false to be asked no more until `start`. */
  poll: () => Promise<boolean>;
}

/** Asks one question after the other, each some time after the last was answered. */
export function createPoller({ intervalMs, poll }: PollerOptions) {
  let run = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const turn = async (own: number): Promise<void> => {
    const goesOn = await poll();
    if (goesOn && own === run) timer = setTimeout(() => void turn(own), intervalMs);
  };
  const stop = (): void => {
    run += 1;
    clearTimeout(timer);
  };
  return {
    /** Asks now, and again and again after that. */
    start(): void {
      stop();
      void turn(run);
    },
    stop,
  };
}
