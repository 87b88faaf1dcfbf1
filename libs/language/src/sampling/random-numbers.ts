/** The complete state of the generator. */
export type RandomState = readonly [number, number, number, number];

/**
 * A row's random numbers: xoshiro128** 1.1 (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
 * 2021), seeded by SplitMix64 (Steele, Lea and Flood, 2014), as its authors advise.
 */
export class RandomNumbers {
  #state: RandomState;

  /** @param start a seed of 0 … 2³²−1, or a state from `snapshot`. */
  constructor(start: number | RandomState) {
    this.#state = typeof start === 'number' ? stateOfSeed(start) : start;
  }

  /** Returns the next 32 bits. */
  nextWord(): number {
    const [first, second, third, fourth] = this.#state;
    const mixedThird = third ^ first;
    const mixedFourth = fourth ^ second;
    this.#state = [first ^ mixedFourth, second ^ mixedThird, mixedThird ^ (second << 9), rotate(mixedFourth, 11)];
    return Math.imul(rotate(Math.imul(second, 5), 7), 9) >>> 0;
  }

  /** Returns a number 0 ≤ x < 1 with 53 random bits. */
  next(): number {
    const high = this.nextWord() >>> 5;
    const low = this.nextWord() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  /** Returns the state, from which another generator can continue. */
  snapshot(): RandomState {
    const [first, second, third, fourth] = this.#state;
    return [first >>> 0, second >>> 0, third >>> 0, fourth >>> 0];
  }
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

function stateOfSeed(seed: number): RandomState {
  const mask = (1n << 64n) - 1n;
  const wordsOf = (state: bigint): [number, number] => {
    let mixed = state & mask;
    mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & mask;
    mixed ^= mixed >> 31n;
    return [Number(mixed & 0xffff_ffffn), Number(mixed >> 32n)];
  };
  const step = 0x9e3779b97f4a7c15n;
  return [...wordsOf(BigInt(seed) + step), ...wordsOf(BigInt(seed) + 2n * step)];
}
