/** A component that runs from `start` to `stop`. Both may be called in any order and any number of times. */
export interface Service extends AsyncDisposable {
  /** Resolves once it is running. No effect if it is already started. */
  start(): Promise<void>;
  /** Resolves once all resources are released. Waits for a start in progress; no effect if not started. */
  stop(): Promise<void>;
}

/**
 * Base class of a {@link Service}: serializes starts and stops and calls `onStart` and `onStop` only when needed. Can
 * be started again after a stop.
 */
export abstract class BaseService<Options = void> implements Service {
  protected readonly options: Options;
  #isStarted = false;
  // Starts and stops run one after the other, in call order.
  #last: Promise<void> = Promise.resolve();

  constructor(options: Options) {
    this.options = options;
  }

  /** Acquires resources and starts. If it throws, `onStop` is called to release them. */
  protected abstract onStart(): Promise<void>;

  /** Releases all resources; must handle a partial `onStart`. */
  protected abstract onStop(): Promise<void>;

  start(): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#isStarted) return;
      this.#isStarted = true;
      try {
        await this.onStart();
      } catch (error) {
        this.#isStarted = false;
        await this.onStop();
        throw error;
      }
    });
  }

  stop(): Promise<void> {
    return this.#enqueue(async () => {
      if (!this.#isStarted) return;
      this.#isStarted = false;
      await this.onStop();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #enqueue(step: () => Promise<void>): Promise<void> {
    const result = this.#last.then(step);
    this.#last = result.catch(() => {});
    return result;
  }
}
