/**
 * Returns the number of parallel streams. Browsers open six connections to a server over HTTP/1.1, shared by all tabs,
 * and a stream occupies one; with six streams, not even a cancel would get through.
 */
export function slotCountOf(protocol: string | undefined): number {
  return protocol === 'h2' || protocol === 'h3' ? 24 : 4;
}

export type StreamSlots = ReturnType<typeof createStreamSlots>;

/** Limits the number of requests that stream at the same time. */
export function createStreamSlots(count: number) {
  let free = count;
  const waiting = new Set<() => void>();
  return {
    /** Waits for a slot, first come, first served, and occupies it while the work runs. Throws the signal's reason. */
    async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
      signal.throwIfAborted();
      if (free > 0) free--;
      else await turnOf(waiting, signal);
      try {
        return await work();
      } finally {
        const [enterNext] = waiting;
        if (enterNext === undefined) free++;
        else enterNext();
      }
    },
  };
}

function turnOf(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const enter = (): void => {
      waiting.delete(enter);
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = (): void => {
      waiting.delete(enter);
      reject(signal.reason as Error);
    };
    waiting.add(enter);
    signal.addEventListener('abort', leave, { once: true });
  });
}
