/**
 * Preprocesses an image for CLIP: scales the shorter side, crops a square from the center, normalizes the colors.
 * Source: transformers `CLIPImageProcessor`, which recorded the tests' values (tools/golden/record-clip-image.py).
 */
import { byteAt, pairUp } from '@darkroom/core';
import { z } from 'zod';
import { positiveInteger, readModelConfig } from '@darkroom/runtime/model-file';
import { resampleBicubic, type RgbImage } from './resample.ts';

const file = 'feature_extractor/preprocessor_config.json';
const color = z.tuple([z.number(), z.number(), z.number()]);
const deviation = z.tuple([z.number().positive(), z.number().positive(), z.number().positive()]);
/** Every published checker has these options on; others are not supported. */
const always = z.literal(true, { error: 'is not supported, expected true' }).default(true);

const schema = z.looseObject({
  do_resize: always,
  do_center_crop: always,
  do_rescale: always,
  do_normalize: always,
  resample: z.literal(3, { error: 'is not supported, expected 3 (bicubic)' }).default(3),
  size: z.union([positiveInteger, z.object({ shortest_edge: positiveInteger })]),
  crop_size: z.union([positiveInteger, z.object({ height: positiveInteger, width: positiveInteger })]),
  rescale_factor: z
    .number()
    .positive()
    .default(1 / 255),
  image_mean: color,
  image_std: deviation,
});

/** Settings of the preprocessing. */
export interface ClipImageSettings {
  /** Length of the shorter side after scaling, in pixels. */
  readonly shortestEdge: number;
  /** Size of the center crop, in pixels. */
  readonly crop: { readonly width: number; readonly height: number };
  /** Factor for 8-bit values. */
  readonly factor: number;
  /** Per color channel. */
  readonly mean: readonly [number, number, number];
  readonly deviation: readonly [number, number, number];
}

/**
 * Reads the settings of a model's preprocessor. @throws DarkroomError `model_unsupported` naming the field, or the file
 * if it is missing.
 */
export async function readClipImageSettings(directory: string): Promise<ClipImageSettings> {
  const config = await readModelConfig(directory, file, schema);
  const { size, crop_size: crop, rescale_factor: factor, image_mean: mean, image_std } = config;
  return {
    shortestEdge: typeof size === 'number' ? size : size.shortest_edge,
    crop: typeof crop === 'number' ? { width: crop, height: crop } : { width: crop.width, height: crop.height },
    factor,
    mean,
    deviation: image_std,
  };
}

/**
 * Preprocesses an image.
 *
 * @returns 3 × height × width of the crop. Areas outside a smaller image are black before normalization.
 */
export function clipImageOf(image: RgbImage, settings: ClipImageSettings): Float32Array {
  const { crop, factor, mean } = settings;
  const { data, width, height } = scaled(image, settings.shortestEdge);
  const left = Math.floor((width - crop.width) / 2);
  const top = Math.floor((height - crop.height) / 2);
  const values = new Float32Array(3 * crop.width * crop.height);
  let at = 0;
  for (const [channel, [channelMean, deviation]] of pairUp(mean, settings.deviation).entries()) {
    for (let y = top; y < top + crop.height; y++) {
      for (let x = left; x < left + crop.width; x++) {
        const isInside = x >= 0 && x < width && y >= 0 && y < height;
        const value = isInside ? byteAt(data, (y * width + x) * 3 + channel) * factor : 0;
        values[at++] = (Math.fround(value) - channelMean) / deviation;
      }
    }
  }
  return values;
}

function scaled(image: RgbImage, edge: number): RgbImage {
  const { width, height } = image;
  const longer = Math.trunc((edge * Math.max(width, height)) / Math.min(width, height));
  return width <= height ? resampleBicubic(image, edge, longer) : resampleBicubic(image, longer, edge);
}
