/** Something that runs from `start` to `stop`. Both may be called in any order and any number of times. */
export interface Service extends AsyncDisposable {
  /** Resolves once it does its work. A second call while started changes nothing. */
  start(): Promise<void>;
  /** Resolves once all it holds is given back. Waits for a start under way; does nothing when not started. */
  stop(): Promise<void>;
}

/**
 * The bookkeeping of a {@link Service}: a subclass says how to start and how to stop, and is called for either only
 * when there is something to do. May be started again after it has stopped. `Options`: what it is made from.
 */
export abstract class BaseService<Options = void> implements Service {
  protected readonly options: Options;
  #isStarted = false;
  // Starts and stops run one after the other, in the order they were asked for.
  #last: Promise<void> = Promise.resolve();

  constructor(options: Options) {
    this.options = options;
  }

  /** Takes what is needed and begins. When it throws, `onStop` is called to give back what was taken. */
  protected abstract onStart(): Promise<void>;

  /** Gives everything back; must cope with an `onStart` that got only halfway. */
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
