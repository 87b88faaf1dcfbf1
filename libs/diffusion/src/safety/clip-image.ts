/**
 * A picture as CLIP sees it: its shorter side scaled, cut to a square around the middle, its colors normalized.
 * Source: transformers `CLIPImageProcessor`, by which the numbers were recorded (tools/golden/record-clip-image.py).
 */
import { z } from 'zod';
import { count, readModelConfig } from '../model/model-file.ts';
import { resampleBicubic, type RgbPicture } from './resample.ts';

const file = 'feature_extractor/preprocessor_config.json';
const color = z.tuple([z.number(), z.number(), z.number()]);
const deviation = z.tuple([z.number().positive(), z.number().positive(), z.number().positive()]);
/** What is left out when it is false is something that no published checker leaves out. */
const always = z.literal(true, { error: 'is not supported, expected true' }).default(true);

const schema = z.looseObject({
  do_resize: always,
  do_center_crop: always,
  do_rescale: always,
  do_normalize: always,
  resample: z.literal(3, { error: 'is not supported, expected 3 (bicubic)' }).default(3),
  size: z.union([count, z.object({ shortest_edge: count })]),
  crop_size: z.union([count, z.object({ height: count, width: count })]),
  rescale_factor: z
    .number()
    .positive()
    .default(1 / 255),
  image_mean: color,
  image_std: deviation,
});

/** How pictures are made ready. */
export interface ClipImageSettings {
  /** Pixels of the shorter side. */
  readonly shortestEdge: number;
  /** Pixels of what is cut out of the middle. */
  readonly crop: { readonly width: number; readonly height: number };
  /** What a value of 8 bits is times of. */
  readonly factor: number;
  /** Of each color. */
  readonly mean: readonly [number, number, number];
  readonly deviation: readonly [number, number, number];
}

/** @throws DarkroomError `model_unsupported` naming the field, or the file if it is missing. */
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
 * Makes a picture ready.
 *
 * @returns 3 × height × width of the crop. What lies outside a picture that is smaller is black before it is normalized.
 */
export function clipImageOf(picture: RgbPicture, settings: ClipImageSettings): Float32Array {
  const { crop, factor, mean, deviation: spread } = settings;
  const { data, width, height } = scaled(picture, settings.shortestEdge);
  const left = Math.floor((width - crop.width) / 2);
  const top = Math.floor((height - crop.height) / 2);
  const values = new Float32Array(3 * crop.width * crop.height);
  let at = 0;
  for (let channel = 0; channel < 3; channel++) {
    for (let y = top; y < top + crop.height; y++) {
      for (let x = left; x < left + crop.width; x++) {
        const isInside = x >= 0 && x < width && y >= 0 && y < height;
        const value = isInside ? data[(y * width + x) * 3 + channel]! * factor : 0;
        values[at++] = (Math.fround(value) - mean[channel]!) / spread[channel]!;
      }
    }
  }
  return values;
}

function scaled(picture: RgbPicture, edge: number): RgbPicture {
  const { width, height } = picture;
  const longer = Math.trunc((edge * Math.max(width, height)) / Math.min(width, height));
  return width <= height ? resampleBicubic(picture, edge, longer) : resampleBicubic(picture, longer, edge);
}
