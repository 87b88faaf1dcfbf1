/**
 * The noise of a picture: `torch.randn` in float32 from `torch.Generator('cpu')`, so that a seed gives here the
 * picture it gives in diffusers.
 *
 * Known limit: the random bits are torch's exactly; the normal values made of them are equal or a unit in the last place
 * off (2.4e-7 at most), because torch takes log and sin from float32 vector code that differs between CPUs. Here two Node
 * builds of one V8 version give the same bytes anywhere, since V8 brings its own log, sin and cos.
 */

import { MersenneTwister } from './mersenne-twister.ts';

/** `torch.randn` makes 16 values at a time from here on, and one pair at a time below. */
const BLOCK = 16;
const HALF_BLOCK = 8;
const TWO_POW_MINUS_24 = 2 ** -24;
const TWO_POW_MINUS_53 = 2 ** -53;
const TWO_POW_32 = 2 ** 32;
/** The 21 bits of a high word that, with the 32 of a low one, make a double's 53. */
const HIGH_BITS = 0x1fffff;
const TWO_PI_FLOAT = Math.fround(2 * Math.PI);

/** Where a generator stands: plain data, safe to send through JSON or a structured clone. */
export interface TorchGeneratorSnapshot {
  readonly seed: number;
  /** How many 32-bit words it has drawn since. */
  readonly drawn: number;
  /**
   * The second value of a pair of which only the first was handed out, or null. Only arrays shorter than 16 leave one;
   * torch keeps it across later, longer draws, so it cannot be found again from `drawn`.
   */
  readonly spare: number | null;
}

/** A seeded source of standard normal values that continues from call to call as torch's generator does. */
export class TorchGenerator {
  readonly #seed: number;
  readonly #twister: MersenneTwister;
  #spare: number | null;

  /**
   * Makes the counterpart of `torch.Generator('cpu').manual_seed(seed)`, or one that continues where a snapshot was taken.
   *
   * @throws RangeError if the seed, of which only the low 32 bits count as in torch, or `drawn` is not an integer in
   * 0 … 2^53 − 1.
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

  /** Fills the whole of `target` with what `torch.randn(target.length, generator=...)` would give next. */
  fillNormal(target: Float32Array): void {
    const twister = this.#twister;
    if (target.length < BLOCK) {
      for (let index = 0; index < target.length; index++) target[index] = this.#nextNormal();
      return;
    }
    // All uniforms first, then the transform: the order in which ATen's normal_fill draws.
    for (let index = 0; index < target.length; index++) target[index] = nextFloat(twister);
    for (let start = 0; start + BLOCK <= target.length; start += BLOCK) transform(target, start);
    if (target.length % BLOCK === 0) return;
    // A rest shorter than a block: ATen draws the last 16 values anew, overlapping the block before.
    const start = target.length - BLOCK;
    for (let index = start; index < target.length; index++) target[index] = nextFloat(twister);
    transform(target, start);
  }

  /** ATen `normal_distribution<double>`: Box-Muller in doubles, the sine half kept for the next call. */
  #nextNormal(): number {
    const kept = this.#spare;
    this.#spare = null;
    if (kept !== null) return kept;
    const angle = 2 * Math.PI * nextDouble(this.#twister);
    const radius = Math.sqrt(-2 * Math.log1p(-nextDouble(this.#twister)));
    this.#spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }
}

/** A float32 uniform in [0, 1): the low 24 bits of one word (ATen `uniform_real<float>`). */
function nextFloat(twister: MersenneTwister): number {
  return (twister.next() & 0xffffff) * TWO_POW_MINUS_24;
}

/** A double uniform in [0, 1): 53 bits of two words, the high one drawn first (ATen `random64`). */
function nextDouble(twister: MersenneTwister): number {
  const high = twister.next() & HIGH_BITS;
  return (high * TWO_POW_32 + twister.next()) * TWO_POW_MINUS_53;
}

/**
 * Box-Muller on 16 uniforms in place, value j paired with value j + 8 (ATen `NormalFill16<float>`). Rounded to float32
 * wherever ATen rounds: the angle's rounding alone moves a value by up to 1e-6.
 */
function transform(values: Float32Array, start: number): void {
  for (let index = start; index < start + HALF_BLOCK; index++) {
    const logarithm = Math.fround(Math.log(1 - values[index]!));
    const radius = Math.fround(Math.sqrt(-2 * logarithm));
    const angle = Math.fround(TWO_PI_FLOAT * values[index + HALF_BLOCK]!);
    values[index] = radius * Math.fround(Math.cos(angle));
    values[index + HALF_BLOCK] = radius * Math.fround(Math.sin(angle));
  }
}
