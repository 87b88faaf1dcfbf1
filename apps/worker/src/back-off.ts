export interface BackOffOptions {
  /** The pause after the second failure, ms; each next one is twice as long. There is none after the first. */
  firstMs: number;
  /** The longest, ms. */
  mostMs: number;
  /** A failure so long after what went before it is a first one again, ms. */
  calmMs: number;
}

/** The pauses before what has failed, or was lost, is tried again. */
export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** It failed, after it had gone well for `wellMs`. @returns the pause before the next try, ms. */
  next(wellMs = 0): number {
    const { firstMs, mostMs, calmMs } = this.#options;
    this.#failures = wellMs >= calmMs ? 1 : this.#failures + 1;
    return this.#failures === 1 ? 0 : Math.min(mostMs, firstMs * 2 ** (this.#failures - 2));
  }
}
