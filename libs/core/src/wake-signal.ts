export interface WaitOptions {
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Wakes callers that wait for a change. A `wake` without a waiter is remembered for the next wait. */
export class WakeSignal {
  readonly #waiting = new Set<(isWoken: boolean) => void>();
  #isWoken = false;

  wake(): void {
    this.#isWoken = this.#waiting.size === 0;
    for (const settle of this.#waiting) settle(true);
  }

  /** Forgets a remembered `wake`. */
  reset(): void {
    this.#isWoken = false;
  }

  /**
   * Resolves true on the next `wake`, at once if one is remembered; false on timeout or when the signal aborts. An
   * abort is no error, which would need a stack each time.
   */
  wait({ timeoutMs, signal }: WaitOptions = {}): Promise<boolean> {
    const wasWoken = this.#isWoken;
    this.#isWoken = false;
    if (wasWoken || signal?.aborted === true) return Promise.resolve(wasWoken);
    return new Promise((resolve) => {
      const settle = (isWoken: boolean): void => {
        this.#waiting.delete(settle);
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        resolve(isWoken);
      };
      const abort = (): void => settle(false);
      const timer = timeoutMs === undefined ? undefined : setTimeout(abort, timeoutMs);
      this.#waiting.add(settle);
      signal?.addEventListener('abort', abort);
    });
  }
}
