import { byteAt, numberAt } from '@darkroom/core';
import type { PreviewProjection } from '../model/config/preview-projection.ts';
import { roundHalfEven } from '../schedulers/numpy.ts';

/**
 * Returns a rough preview of latents without decoding them: z · matrix + bias for each latent pixel.
 *
 * @param latents channels × pixels, scaled (as the UNet reads them).
 * @returns RGB, 8 bits, one pixel per latent pixel.
 */
export function projectLatents(latents: Float32Array, { matrix, bias }: PreviewProjection): Uint8Array {
  const pixels = latents.length / matrix.length;
  const rgb = new Uint8Array(pixels * 3);
  for (let pixel = 0; pixel < pixels; pixel++) {
    let [red, green, blue] = bias;
    for (const [channel, [ofRed, ofGreen, ofBlue]] of matrix.entries()) {
      const value = numberAt(latents, channel * pixels + pixel);
      red += value * ofRed;
      green += value * ofGreen;
      blue += value * ofBlue;
    }
    rgb.set([toByte(red), toByte(green), toByte(blue)], pixel * 3);
  }
  return rgb;
}

function toByte(value: number): number {
  return Math.round(Math.min(Math.max(value, 0), 1) * 255);
}

/**
 * Converts an image to an encoder's input as diffusers' `VaeImageProcessor` does: 2 · (x / 255) − 1 in float32.
 *
 * @param rgb 8 bits, interleaved.
 * @returns 3 × height × width, −1 … 1.
 */
export function sampleOfRgb(rgb: Uint8Array): Float32Array {
  const pixels = rgb.length / 3;
  const sample = new Float32Array(rgb.length);
  for (let color = 0; color < 3; color++) {
    for (let pixel = 0; pixel < pixels; pixel++) {
      sample[color * pixels + pixel] = Math.fround(2 * Math.fround(byteAt(rgb, pixel * 3 + color) / 255)) - 1;
    }
  }
  return sample;
}

/**
 * Converts the decoder's output to an image as diffusers' `VaeImageProcessor` does: (x / 2 + 0.5) clamped, × 255
 * rounded, in float32 with numpy's rounding (half to even).
 *
 * @param sample 3 × height × width, −1 … 1.
 * @returns RGB, 8 bits, interleaved.
 */
export function interleaveSample(sample: Float32Array): Uint8Array {
  const pixels = sample.length / 3;
  const rgb = new Uint8Array(sample.length);
  for (let color = 0; color < 3; color++) {
    for (let pixel = 0; pixel < pixels; pixel++) {
      const value = Math.fround(numberAt(sample, color * pixels + pixel) / 2 + 0.5);
      rgb[pixel * 3 + color] = roundHalfEven(Math.fround(Math.min(Math.max(value, 0), 1) * 255));
    }
  }
  return rgb;
}
