/** Creates a poller: calls `ask` repeatedly with a pause after each response, until one resolves to false. */
export function createPoller(everyMs: number, ask: (signal: AbortSignal) => Promise<boolean>) {
  let run = new AbortController();
  const poll = async (signal: AbortSignal): Promise<void> => {
    while (await ask(signal)) if (!(await pause(everyMs, signal))) return;
  };
  return {
    start(): void {
      run.abort();
      run = new AbortController();
      void poll(run.signal);
    },
    stop: () => run.abort(),
  };
}

/** Waits; resolves to true after `ms`, to false if the signal aborts. */
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
