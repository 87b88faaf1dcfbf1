/** The four words of the generator: all that makes the numbers that follow. */
export type RandomState = readonly [number, number, number, number];

/**
 * A row's own random numbers: xoshiro128** 1.1 (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
 * 2021), whose state is set up by SplitMix64 (Steele, Lea and Flood, 2014), as its authors advise.
 */
export class RandomNumbers {
  readonly #state: Uint32Array;

  /** @param start a seed of 0 … 2³²−1, or a state from `snapshot`. */
  constructor(start: number | RandomState) {
    this.#state = Uint32Array.from(typeof start === 'number' ? stateOfSeed(start) : start);
  }

  /** The next 32 bits. */
  nextWord(): number {
    const state = this.#state;
    const word = Math.imul(rotate(Math.imul(state[1]!, 5), 7), 9) >>> 0;
    const shifted = state[1]! << 9;
    state[2]! ^= state[0]!;
    state[3]! ^= state[1]!;
    state[1]! ^= state[2]!;
    state[0]! ^= state[3]!;
    state[2]! ^= shifted;
    state[3] = rotate(state[3]!, 11);
    return word;
  }

  /** A number of 0 ≤ x < 1, of 53 bits. */
  next(): number {
    const high = this.nextWord() >>> 5;
    const low = this.nextWord() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  /** For a generator that goes on from here. */
  snapshot(): RandomState {
    return [...this.#state] as unknown as RandomState;
  }
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

function stateOfSeed(seed: number): number[] {
  const mask = (1n << 64n) - 1n;
  let state = BigInt(seed);
  return [0, 1].flatMap(() => {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let mixed = state;
    mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & mask;
    mixed ^= mixed >> 31n;
    return [Number(mixed & 0xffff_ffffn), Number(mixed >> 32n)];
  });
}
