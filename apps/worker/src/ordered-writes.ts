import { isUnavailable, type StoreConnection, untilAnswered } from '@darkroom/store';

/**
 * Writes of one request, in order. They are sent without waiting for answers; when Redis cannot take one, it and what
 * follows is sent again one by one, so that a step does not come before the one it follows.
 */
export class OrderedWrites {
  readonly #store: StoreConnection;
  readonly #untilMs: number;
  #unanswered = 0;
  /** One could not be taken, and not all have been answered since. */
  #isHeldUp = false;
  #last: Promise<unknown> = Promise.resolve();

  /** Gives up at `untilMs`. */
  constructor(store: StoreConnection, untilMs: number) {
    this.#store = store;
    this.#untilMs = untilMs;
  }

  /** Rejects with what the last try threw. */
  send<Result>(call: () => Promise<Result>): Promise<Result> {
    const answered = this.#send(call, this.#last);
    this.#last = Promise.allSettled([this.#last, answered]).then(() => {});
    return answered;
  }

  /** Resolves when all that were sent so far have been answered, or given up. */
  async answered(): Promise<void> {
    await this.#last;
  }

  async #send<Result>(call: () => Promise<Result>, before: Promise<unknown>): Promise<Result> {
    this.#unanswered++;
    try {
      if (!this.#isHeldUp) {
        try {
          return await call();
        } catch (error) {
          if (!isUnavailable(error)) throw error;
          this.#isHeldUp = true;
        }
      }
      await before;
      return await untilAnswered(this.#store, { untilMs: this.#untilMs }, call);
    } finally {
      this.#unanswered--;
      if (this.#unanswered === 0) this.#isHeldUp = false;
    }
  }
}
