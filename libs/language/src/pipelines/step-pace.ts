/** Below this the call itself takes longer than its tokens. */
const leastTokens = 8;

/**
 * How many tokens of prompts are read in a step beside rows that write: so many that reading takes no longer than a step of
 * writing. Then nobody waits for a token more than twice as long as usually, on any machine and with any number of rows.
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

  /** Tokens of the next step of reading. */
  get tokens(): number {
    return this.#tokens;
  }

  /** A step of writing took so long. */
  hasWritten(ms: number): void {
    this.#writeMs = ms;
  }

  /** A step of reading took so long, with as many tokens as it might have. */
  hasRead(ms: number): void {
    const next = ms > this.#writeMs ? this.#tokens / 2 : this.#tokens + leastTokens;
    this.#tokens = Math.min(this.#most, Math.max(leastTokens, Math.floor(next)));
  }
}
