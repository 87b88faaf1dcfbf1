/** How many requests may stream at the same time. */
export interface StreamSlots {
  /** Waits for a slot, in order of asking, and holds it while the work runs. Throws the signal's reason. */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>;
}

/**
 * Browsers open six connections to a server over HTTP/1.1, for all tabs together. Streams hold theirs, so a few must be
 * left for everything else: with six streams open, not even a cancel would get through.
 */
export function slotCountOf(protocol: string | undefined): number {
  return protocol === 'h2' || protocol === 'h3' ? 24 : 4;
}

export function createStreamSlots(count: number): StreamSlots {
  let free = count;
  const waiting: (() => void)[] = [];
  const release = (): void => {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  };
  const take = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    if (free > 0) return void free--;
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        waiting.splice(waiting.indexOf(enter), 1);
        reject(signal.reason as Error);
      };
      const enter = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      waiting.push(enter);
      signal.addEventListener('abort', leave, { once: true });
    });
  };
  return {
    async run(signal, work) {
      await take(signal);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
