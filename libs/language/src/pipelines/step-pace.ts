/** Below this the call itself takes longer than its tokens. */
const leastTokens = 8;

/**
 * How many tokens of prompts are read at once beside rows that write: so many that those who write wait no longer than for a
 * step of their own, on any machine and with any number of rows.
 */
export class StepPace {
  readonly #most: number;
  #tokens: number;
  #writeMs = Infinity;

  /** @param most tokens in any case. */
  constructor(most: number) {
    this.#most = most;
    this.#tokens = Math.min(most, 2 * leastTokens);
  }

  /** Tokens of the next call that reads. */
  get tokens(): number {
    return this.#tokens;
  }

  /** How long a step of reading may go on: less than one of writing takes, as not every part takes as long as the one before. */
  get readMs(): number {
    return 0.75 * this.#writeMs;
  }

  /** A step of writing took so long. */
  hasWritten(ms: number): void {
    // One that took much longer than others was held up by something else.
    this.#writeMs = Math.min(ms, 1.05 * this.#writeMs);
  }

  /** A call that reads, with as many tokens as it might have, took so long, or a part of it did. */
  hasRead(ms: number): void {
    const next = ms > this.#writeMs ? this.#tokens / 2 : this.#tokens + leastTokens;
    this.#tokens = Math.min(this.#most, Math.max(leastTokens, Math.floor(next)));
  }
}
