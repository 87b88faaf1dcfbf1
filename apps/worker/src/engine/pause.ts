import { setTimeout as delay } from 'node:timers/promises';

/** The pauses of one that may have reason to go on at once. No two at a time. */
export class Pause {
  readonly #isOver: () => boolean;
  #ending = new AbortController();

  /** @param isOver whether there is such a reason; who gives one calls `look`. */
  constructor(isOver: () => boolean) {
    this.#isOver = isOver;
  }

  /** Waits for so long, or until it is over. */
  async wait(ms: number): Promise<void> {
    if (this.#isOver()) return;
    this.#ending = new AbortController();
    await delay(ms, undefined, { signal: this.#ending.signal }).catch(() => {});
  }

  look(): void {
    if (this.#isOver()) this.#ending.abort();
  }
}
