import type { ImageModel, ImageRequest } from '@darkroom/client';
import type { GalleryEntry } from './gallery-storage.ts';
import type { ImageRequestState } from './request-state.ts';
import { statusWords } from './status-words.ts';

/** A finished image of the gallery. */
export interface ViewedImage {
  entry: GalleryEntry;
  /** Position in its request. */
  index: number;
  file: { blob: Blob; seed: number };
  /** Its request's state, such as `Developed in 2.1 s`. */
  status: string;
}

/** Returns the finished images of a request. */
export function viewedImages(entry: GalleryEntry, state: ImageRequestState): ViewedImage[] {
  const status = statusWords(state);
  return state.images.flatMap(({ file }, index) => (file === undefined ? [] : [{ entry, index, file, status }]));
}

/** Strength of variations: the things stay, their shapes change. */
const variedStrength = 0.7;
const variationCount = 4;

/** Returns the request that makes this image alone. */
export function settingsOf({ entry, file }: ViewedImage): ImageRequest {
  return { ...entry.request, seed: file.seed, n: 1 };
}

/** Returns a request for variations: from the image if the model takes images, otherwise with other seeds. */
export function variationsOf(image: ViewedImage, model: ImageModel | undefined, seed: number): ImageRequest {
  const { mask: _mask, ...settings } = settingsOf(image);
  const request = { ...settings, seed, n: variationCount };
  if (model?.takes?.includes('image') !== true) return request;
  return { ...request, image: image.file.blob, strength: variedStrength };
}

/** Returns the largest factor by which the image can be upscaled; undefined if it is upscaled already. */
export function upscaleOf({ entry }: ViewedImage, model: ImageModel | undefined): 2 | 4 | undefined {
  return entry.request.upscale === undefined ? model?.upscales.at(-1) : undefined;
}

/** Returns labels and values that describe the image and how it was made. */
export function detailsOf({ entry, index, file, status }: ViewedImage): [string, string][] {
  const { id, createdAtMs, request } = entry;
  const { model, size, num_inference_steps: steps, guidance_scale: guidance, scheduler, loras = [] } = request;
  const { negative_prompt: negative, image, mask, strength, upscale, metadata, n = 1 } = request;
  const details: [string, string | number | undefined][] = [
    ['State', status],
    ['Image', n === 1 ? undefined : `${index + 1} of ${n}`],
    ['Model', model],
    ['Size', size?.replace('x', ' × ')],
    ['Seed', file.seed],
    ['Steps', steps],
    ['Guidance', guidance],
    ['Scheduler', scheduler],
    ['Negative prompt', negative],
    ['Input image', image === undefined ? undefined : mask === undefined ? 'yes' : 'yes, masked'],
    ['Strength', image === undefined ? undefined : strength],
    ['Styles', loras.map(({ id, scale = 1 }) => `${id} × ${scale}`).join(', ') || undefined],
    ['Upscaled', upscale === undefined ? undefined : `${upscale}×`],
    ['File', `${file.blob.type}, ${Math.ceil(file.blob.size / 1000)} KB, ${metadata ? 'with' : 'without'} settings`],
    ['Submitted', new Date(createdAtMs).toLocaleString()],
    ['Request', id],
  ];
  return details.flatMap(([label, value]) => (value === undefined ? [] : [[label, String(value)]]));
}
