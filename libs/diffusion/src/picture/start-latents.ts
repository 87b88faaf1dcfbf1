/**
 * What a row starts with: noise, or a picture with noise on it, and what it needs of that picture later.
 * Source: diffusers `prepare_latents` and `prepare_mask_latents` of the pipelines for image to image and for inpainting. The
 * order in which noise is drawn is theirs, so that a seed gives the same picture.
 */
import type { LatentFacts } from '../model/facts/latent-facts.ts';
import type { TorchGenerator } from '../random/torch-generator.ts';
import type { Scheduler } from '../schedulers/scheduler.ts';
import type { LatentDistribution } from '../vae/vae-encoder.ts';
import type { PictureSource } from './picture-source.ts';

/** A picture of which only a part is painted anew, by a denoiser that does not know: the rest is put back after each step. */
export interface KeptPicture {
  /** As in `PictureSource`. */
  readonly mask: Uint8Array;
  /** Its latents. */
  readonly original: Float32Array;
  /** That they are given on the way. */
  readonly noise: Float32Array;
}

export interface StartedLatents {
  readonly latents: Float32Array;
  readonly kept: KeptPicture | undefined;
  /** What the denoiser reads after the latents: the mask, and the masked picture. */
  readonly alongside: Float32Array | undefined;
}

export interface StartLatentsOptions {
  source: PictureSource | undefined;
  strength: number;
  /** Before its first step. */
  scheduler: Scheduler;
  generator: TorchGenerator;
  facts: LatentFacts;
  /** Of the latents, in values. */
  length: number;
  /** Takes the place of the noise of the seed. */
  givenNoise: Float32Array | undefined;
}

/** Draws the noise of a row's start from the generator. */
export function startLatents(options: StartLatentsOptions): StartedLatents {
  const { source, strength, scheduler, generator, length, givenNoise } = options;
  const original = source?.picture && drawLatents(source.picture, options);
  const noise = new Float32Array(length);
  if (givenNoise === undefined) generator.fillNormal(noise);
  else noise.set(givenNoise);
  const latents = new Float32Array(length);
  // What is inpainted at full strength starts from noise alone. Image to image never does: diffusers leaves a trace there.
  const isFromNoise = original === undefined || (source?.mask !== undefined && strength === 1);
  if (isFromNoise) scaleNoise(noise, Math.fround(scheduler.initNoiseSigma), latents);
  else scheduler.addNoise(original, noise, latents);
  if (source?.mask === undefined) return { latents, kept: undefined, alongside: undefined };
  const { mask, masked } = source;
  if (masked !== undefined) {
    const alongside = new Float32Array(mask.length + length);
    alongside.set(mask);
    alongside.set(drawLatents(masked, options), mask.length);
    return { latents, kept: undefined, alongside };
  }
  // Drawn for the masked picture, of which no use is made.
  generator.fillNormal(new Float32Array(length));
  return { latents, kept: { mask, original: original!, noise }, alongside: undefined };
}

/** Latents of a distribution, at the scale in which the denoiser knows them. */
function drawLatents(
  { mean, deviation }: LatentDistribution,
  { generator, facts }: Pick<StartLatentsOptions, 'generator' | 'facts'>,
): Float32Array {
  const drawn = new Float32Array(mean.length);
  // Drawn in any case: the noise that follows is then the same for all exports of an encoder.
  generator.fillNormal(drawn);
  const scaling = Math.fround(facts.scalingFactor);
  const shift = Math.fround(facts.shiftFactor);
  return drawn.map((noise, at) => {
    const value = Math.fround(mean[at]! + Math.fround((deviation?.[at] ?? 0) * noise));
    return Math.fround(value - shift) * scaling;
  });
}

function scaleNoise(noise: Float32Array, sigma: number, target: Float32Array): void {
  for (let at = 0; at < target.length; at++) target[at] = noise[at]! * sigma;
}

/** Puts back what is not painted anew, with the noise of the scheduler's present step; the same of the finished latents' estimate. */
export function putBack(
  { mask, original, noise }: KeptPicture,
  {
    scheduler,
    latents,
    predictedOriginal,
  }: { scheduler: Scheduler; latents: Float32Array; predictedOriginal: Float32Array },
): void {
  const proper = new Float32Array(latents.length);
  scheduler.addNoise(original, noise, proper);
  for (let at = 0; at < latents.length; at++) {
    if (mask[at % mask.length] === 1) continue;
    latents[at] = proper[at]!;
    predictedOriginal[at] = original[at]!;
  }
}
