export interface BackOffOptions {
  /** The first pause, ms; each next one is twice as long. */
  firstMs: number;
  /** The longest, ms. */
  mostMs: number;
  /** What went well for so long is over with its failures: the next pause is the first again, ms. */
  calmMs: number;
}

/** The pauses between tries of what fails again and again. */
export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** It failed after it had gone well for `wellMs`. @returns the pause before the next try, ms. */
  next(wellMs = 0): number {
    const { firstMs, mostMs, calmMs } = this.#options;
    if (wellMs >= calmMs) this.#failures = 0;
    return Math.min(mostMs, firstMs * 2 ** this.#failures++);
  }
}
