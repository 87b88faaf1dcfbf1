/**
 * Draws an image's noise: `torch.randn` in float32 from `torch.Generator('cpu')`, so that a seed makes the same
 * image as in diffusers.
 *
 * Known limit: the random bits equal torch's; the normal values are equal or one unit in the last place off (at most
 * 2.4e-7), because torch computes log and sin in float32 vector code that differs between CPUs. Here, the bytes are the
 * same on every machine with the same V8 version, which has its own log, sin and cos.
 */

import { numberAt } from '@darkroom/core';
import { MersenneTwister } from './mersenne-twister.ts';

/** From this length on, `torch.randn` makes 16 values at a time, below it one pair at a time. */
const BLOCK = 16;
const HALF_BLOCK = 8;
const TWO_POW_MINUS_24 = 2 ** -24;
const TWO_POW_MINUS_53 = 2 ** -53;
const TWO_POW_32 = 2 ** 32;
/** The 21 bits of a high word that, with the 32 bits of a low word, make a double's 53 bits. */
const HIGH_BITS = 0x1fffff;
const TWO_PI_FLOAT = Math.fround(2 * Math.PI);

/** A generator's state: plain data, safe for JSON and structured clone. */
export interface TorchGeneratorSnapshot {
  readonly seed: number;
  /** Number of 32-bit words drawn since seeding. */
  readonly drawn: number;
  /**
   * The unused second value of a pair, or null. Only arrays shorter than 16 leave one; torch retains it across later,
   * longer draws, so it cannot be derived from `drawn`.
   */
  readonly spare: number | null;
}

/** A seeded source of standard normal values that continues from call to call like torch's generator. */
export class TorchGenerator {
  readonly #seed: number;
  readonly #twister: MersenneTwister;
  #spare: number | null;

  /**
   * Creates the counterpart of `torch.Generator('cpu').manual_seed(seed)`, or restores a snapshot.
   *
   * @throws RangeError if the seed (of which only the low 32 bits count, as in torch) or `drawn` is not an integer in 0
   * … 2^53 − 1.
   */
  constructor({
    seed,
    drawn = 0,
    spare = null,
  }: Pick<TorchGeneratorSnapshot, 'seed'> & Partial<TorchGeneratorSnapshot>) {
    for (const [field, value] of Object.entries({ seed, drawn })) {
      if (Number.isSafeInteger(value) && value >= 0) continue;
      throw new RangeError(`${field} must be an integer in 0 … 2^53 − 1, not ${value}`);
    }
    this.#seed = seed;
    this.#twister = new MersenneTwister(seed);
    this.#twister.skip(drawn);
    this.#spare = spare;
  }

  snapshot(): TorchGeneratorSnapshot {
    return { seed: this.#seed, drawn: this.#twister.drawn, spare: this.#spare };
  }

  /** Fills `target` with the next values of `torch.randn(target.length, generator=...)`. */
  fillNormal(target: Float32Array): void {
    const twister = this.#twister;
    if (target.length < BLOCK) {
      for (let index = 0; index < target.length; index++) target[index] = this.#nextNormal();
      return;
    }
    // First all uniforms, then the transform: the order in which ATen's normal_fill draws.
    for (let index = 0; index < target.length; index++) target[index] = nextFloat(twister);
    for (let start = 0; start + BLOCK <= target.length; start += BLOCK) transform(target, start);
    if (target.length % BLOCK === 0) return;
    // The remainder is shorter than a block: ATen draws the last 16 values again, overlapping the previous block.
    const start = target.length - BLOCK;
    for (let index = start; index < target.length; index++) target[index] = nextFloat(twister);
    transform(target, start);
  }

  /**
   * Draws one value like ATen's `normal_distribution<double>`: Box-Muller in doubles; the sine half is the spare value.
   */
  #nextNormal(): number {
    const spare = this.#spare;
    this.#spare = null;
    if (spare !== null) return spare;
    const angle = 2 * Math.PI * nextDouble(this.#twister);
    const radius = Math.sqrt(-2 * Math.log1p(-nextDouble(this.#twister)));
    this.#spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }
}

/** Returns a float32 uniform in [0, 1): the low 24 bits of one word (ATen `uniform_real<float>`). */
function nextFloat(twister: MersenneTwister): number {
  return (twister.next() & 0xffffff) * TWO_POW_MINUS_24;
}

/** Returns a double uniform in [0, 1): 53 bits of two words, the high one drawn first (ATen `random64`). */
function nextDouble(twister: MersenneTwister): number {
  const high = twister.next() & HIGH_BITS;
  return (high * TWO_POW_32 + twister.next()) * TWO_POW_MINUS_53;
}

/**
 * Applies Box-Muller to 16 uniforms in place, pairing value j with value j + 8 (ATen `NormalFill16<float>`). Rounds to
 * float32 wherever ATen does: the angle's rounding alone changes a value by up to 1e-6.
 */
function transform(values: Float32Array, start: number): void {
  for (let index = start; index < start + HALF_BLOCK; index++) {
    const logarithm = Math.fround(Math.log(1 - numberAt(values, index)));
    const radius = Math.fround(Math.sqrt(-2 * logarithm));
    const angle = Math.fround(TWO_PI_FLOAT * numberAt(values, index + HALF_BLOCK));
    values[index] = radius * Math.fround(Math.cos(angle));
    values[index + HALF_BLOCK] = radius * Math.fround(Math.sin(angle));
  }
}
