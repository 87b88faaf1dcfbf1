/** Input images, and a model that accepts them. */
import type { ImageCard } from '@darkroom/kinds';
import { publishModel } from '@darkroom/store';
import sharp, { type Sharp } from 'sharp';
import { card, openTestApi, type TestApi, type TestApiOptions } from './test-api.ts';

/** Opens an API with a model that accepts images and masks. */
export async function openImageApi(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTestApi(options);
  const taking: ImageCard = { ...card, takes: ['image', 'mask'] };
  await publishModel(test.store, taking);
  return test;
}

/** Creates an image of one color, by default red. */
export function plain(width: number, height: number, background: string | object = '#f00'): Sharp {
  return sharp({ create: { width, height, channels: 4, background } }).png();
}

export async function pngOf(image: Sharp): Promise<Buffer> {
  return image.png().toBuffer();
}

export async function dataUrl(image: Sharp): Promise<string> {
  return `data:image/png;base64,${(await pngOf(image)).toString('base64')}`;
}

/** Creates an image whose left half is transparent. */
export function halfClear(width: number, height: number, background = '#f00'): Sharp {
  const hole = { create: { width: width / 2, height, channels: 4, background: '#fff' } } as const;
  return plain(width, height, background).composite([{ input: hole, left: 0, top: 0, blend: 'dest-out' }]);
}

/** Creates an image whose left half is white, the other black. */
export function halfWhite(width: number, height: number): Sharp {
  const white = { create: { width: width / 2, height, channels: 4, background: '#fff' } } as const;
  return plain(width, height, '#000').composite([{ input: white, left: 0, top: 0 }]);
}

/** Creates a form; buffers become files. */
export function toFormData(fields: Readonly<Record<string, string | Buffer>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string') form.set(name, value);
    else form.set(name, new Blob([new Uint8Array(value)], { type: 'image/png' }), `${name}.png`);
  return form;
}

/** Returns the first channel of the first and last pixel of an image's first row. */
export async function endsOf(file: Uint8Array): Promise<[number, number]> {
  const { data, info } = await sharp(file).raw().toBuffer({ resolveWithObject: true });
  return [data[0]!, data[(info.width - 1) * info.channels]!];
}
