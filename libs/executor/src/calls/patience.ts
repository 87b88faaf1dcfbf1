/** Before its first word a call has so much more time. */
const firstWordFactor = 10;

/** Notices a call that falls silent. */
export class Patience {
  readonly #limitMs: number;
  readonly #onOver: (silentMs: number) => void;
  #hasSpoken = false;
  #timer: NodeJS.Timeout;

  /** @param limitMs how long it may be silent once it has begun to speak. */
  constructor(limitMs: number, onOver: (silentMs: number) => void) {
    this.#limitMs = limitMs;
    this.#onOver = onOver;
    this.#timer = this.#wait(firstWordFactor * limitMs);
  }

  /** `isWord`: it said something of its output, rather than that it is at it. */
  heard(isWord: boolean): void {
    if (this.#hasSpoken || !isWord) return void this.#timer.refresh();
    this.#hasSpoken = true;
    this.end();
    this.#timer = this.#wait(this.#limitMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #wait(silentMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#onOver(silentMs), silentMs);
  }
}
