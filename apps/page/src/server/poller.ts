/** Asks one question after the other, each some time after the last was answered, until one resolves to false. */
export function createPoller(everyMs: number, ask: (signal: AbortSignal) => Promise<boolean>) {
  let run = new AbortController();
  const turns = async (signal: AbortSignal): Promise<void> => {
    while (await ask(signal)) if (!(await pause(everyMs, signal))) return;
  };
  return {
    start(): void {
      run.abort();
      run = new AbortController();
      void turns(run.signal);
    },
    stop: () => run.abort(),
  };
}

/** Resolves to true after so long, to false when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      resolve(!signal.aborted);
    };
    const timer = setTimeout(over, signal.aborted ? 0 : ms);
    signal.addEventListener('abort', over);
  });
}
