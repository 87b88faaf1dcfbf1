/**
 * Builds a row's initial latents: noise, or an input image with noise added.
 * Source: diffusers `prepare_latents` and `prepare_mask_latents` of the image-to-image and inpainting pipelines. Noise
 * is drawn in the same order as there, so that a seed makes the same image.
 */
import { DarkroomError, numberAt } from '@darkroom/core';
import { lengthOf } from '@darkroom/runtime';
import type { LatentConfig } from '../model/config/latent-config.ts';
import type { TorchGenerator } from '../random/torch-generator.ts';
import type { Scheduler } from '../schedulers/scheduler.ts';
import type { LatentDims } from '../vae/plane.ts';
import type { LatentDistribution } from '../vae/vae-encoder.ts';
import type { ImageSource } from './image-source.ts';

/** The preserved part of an image that is inpainted by an ordinary denoiser: it is restored after each step. */
export interface PreservedImage {
  /** 1 per latent pixel to repaint; see `ImageSource`. */
  readonly mask: Uint8Array;
  /** The latents of the input image. */
  readonly original: Float32Array;
  /** The noise added to these latents at each step. */
  readonly noise: Float32Array;
}

export interface StartedLatents {
  readonly latents: Float32Array;
  readonly preserved: PreservedImage | undefined;
  /** Inputs of an inpainting denoiser after the latents: the mask, and the masked image. */
  readonly alongside: Float32Array | undefined;
}

export interface StartLatentsOptions {
  source: ImageSource | undefined;
  strength: number;
  /** Must not have taken a step. */
  scheduler: Scheduler;
  generator: TorchGenerator;
  latents: LatentConfig;
  latentDims: LatentDims;
  /** Replaces the seed's noise. */
  givenNoise: Float32Array | undefined;
}

/**
 * Builds a row's initial latents with noise from the generator.
 *
 * @throws DarkroomError `invalid_request` if the given noise does not fit.
 */
export function startLatents(options: StartLatentsOptions): StartedLatents {
  const { source, strength, scheduler, generator, latentDims, givenNoise } = options;
  const length = lengthOf(latentDims);
  const original = source?.image && drawLatents(source.image, options);
  const noise = new Float32Array(length);
  if (givenNoise === undefined) generator.fillNormal(noise);
  else noise.set(checkNoise(givenNoise, latentDims));
  const latents = new Float32Array(length);
  // Inpainting at full strength starts from noise alone. Image-to-image never does: as in diffusers, a trace of the
  // image remains.
  const isFromNoise = original === undefined || (source?.mask !== undefined && strength === 1);
  if (isFromNoise) scaleNoise(noise, Math.fround(scheduler.initNoiseSigma), latents);
  else scheduler.addNoise(original, noise, latents);
  if (source?.mask === undefined) return { latents, preserved: undefined, alongside: undefined };
  const { mask, masked } = source;
  if (masked !== undefined) {
    const alongside = new Float32Array(mask.length + length);
    alongside.set(mask);
    alongside.set(drawLatents(masked, options), mask.length);
    return { latents, preserved: undefined, alongside };
  }
  if (original === undefined) throw new Error('an image that is preserved in part was not encoded');
  // diffusers draws noise for the masked image here, which this denoiser does not read.
  generator.fillNormal(new Float32Array(length));
  return { latents, preserved: { mask, original, noise }, alongside: undefined };
}

function checkNoise(noise: Float32Array, latentDims: LatentDims): Float32Array {
  const length = lengthOf(latentDims);
  if (noise.length === length && noise.every((value) => Number.isFinite(value))) return noise;
  const expected = `${length} finite numbers, ${latentDims.join(' × ')} (channels, height, width)`;
  const message = `initialNoise: ${noise.length} values were given; expected ${expected}`;
  throw new DarkroomError('invalid_request', 'diffusion.create-rows', message);
}

/** Samples latents from a distribution, scaled for the denoiser. */
function drawLatents(
  { mean, deviation }: LatentDistribution,
  { generator, latents }: Pick<StartLatentsOptions, 'generator' | 'latents'>,
): Float32Array {
  const drawn = new Float32Array(mean.length);
  // Drawn even without a deviation, so that later noise is the same for every kind of encoder export.
  generator.fillNormal(drawn);
  const scaling = Math.fround(latents.scalingFactor);
  const shift = Math.fround(latents.shiftFactor);
  return drawn.map((noise, at) => {
    const value = Math.fround(numberAt(mean, at) + Math.fround((deviation?.[at] ?? 0) * noise));
    return Math.fround(value - shift) * scaling;
  });
}

function scaleNoise(noise: Float32Array, sigma: number, target: Float32Array): void {
  for (let at = 0; at < target.length; at++) target[at] = numberAt(noise, at) * sigma;
}

/**
 * Restores the part that is not repainted, with noise of the scheduler's current level; also in the estimate of the
 * finished latents.
 */
export function restorePreserved(
  { mask, original, noise }: PreservedImage,
  {
    scheduler,
    latents,
    predictedOriginal,
  }: { scheduler: Scheduler; latents: Float32Array; predictedOriginal: Float32Array },
): void {
  const noised = new Float32Array(latents.length);
  scheduler.addNoise(original, noise, noised);
  for (let at = 0; at < latents.length; at++) {
    if (mask[at % mask.length] === 1) continue;
    latents[at] = numberAt(noised, at);
    predictedOriginal[at] = numberAt(original, at);
  }
}
