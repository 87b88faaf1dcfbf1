import { numberAt } from '@darkroom/core';
/**
 * MT19937, the 32-bit Mersenne Twister that torch's CPU generator draws from.
 * Source: Matsumoto and Nishimura 1998; ATen/core/MT19937RNGEngine.h.
 */

/** Words in the state of MT19937; one regeneration makes as many new words. */
const STATE_WORDS = 624;
/** Distance of the word that each new word is mixed with. */
const SHIFT_WORDS = 397;
const UPPER_BIT = 0x80000000;
const LOWER_BITS = 0x7fffffff;
const TWIST_MATRIX = 0x9908b0df;

export class MersenneTwister {
  /** Words drawn or skipped since seeding. */
  drawn = 0;
  readonly #state = new Uint32Array(STATE_WORDS);
  #position = STATE_WORDS;

  /** @param seed any integer; only its low 32 bits count, as in `torch.manual_seed`. */
  constructor(seed: number) {
    this.#state[0] = seed;
    for (let index = 1, word = seed >>> 0; index < STATE_WORDS; index++) {
      word = (Math.imul(1812433253, word ^ (word >>> 30)) + index) >>> 0;
      this.#state[index] = word;
    }
  }

  /** Returns the next word, an integer in 0 … 2^32 − 1. */
  next(): number {
    this.drawn += 1;
    if (this.#position === STATE_WORDS) this.#regenerate();
    let value = numberAt(this.#state, this.#position++);
    value ^= value >>> 11;
    value ^= (value << 7) & 0x9d2c5680;
    value ^= (value << 15) & 0xefc60000;
    value ^= value >>> 18;
    return value >>> 0;
  }

  /** Skips `words` words as if `next` had been called that often, but without tempering them. */
  skip(words: number): void {
    this.drawn += words;
    for (let left = words; left > 0;) {
      if (this.#position === STATE_WORDS) this.#regenerate();
      const taken = Math.min(left, STATE_WORDS - this.#position);
      this.#position += taken;
      left -= taken;
    }
  }

  #regenerate(): void {
    const state = this.#state;
    for (let index = 0; index < STATE_WORDS; index++) {
      const next = numberAt(state, (index + 1) % STATE_WORDS);
      const mixed = (numberAt(state, index) & UPPER_BIT) | (next & LOWER_BITS);
      const twisted = (mixed >>> 1) ^ (next & 1 ? TWIST_MATRIX : 0);
      state[index] = numberAt(state, (index + SHIFT_WORDS) % STATE_WORDS) ^ twisted;
    }
    this.#position = 0;
  }
}
