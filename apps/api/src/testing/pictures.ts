/** Pictures to begin with, and a model that takes them. */
import type { PictureCard } from '@darkroom/kinds';
import { publishModel } from '@darkroom/store';
import sharp, { type Sharp } from 'sharp';
import { card, openTestApi, type TestApi, type TestApiOptions } from './test-api.ts';

/** An API with a model that takes pictures and masks. */
export async function openPictureApi(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTestApi(options);
  const taking: PictureCard = { ...card, takes: ['image', 'mask'] };
  await publishModel(test.store, taking);
  return test;
}

/** Red; a PNG unless told otherwise. */
export function plain(width: number, height: number, background: string | object = '#f00'): Sharp {
  return sharp({ create: { width, height, channels: 4, background } }).png();
}

export async function pngOf(picture: Sharp): Promise<Buffer> {
  return picture.png().toBuffer();
}

export async function dataUrl(picture: Sharp): Promise<string> {
  return `data:image/png;base64,${(await pngOf(picture)).toString('base64')}`;
}

/** Its left half has no opacity. */
export function halfClear(width: number, height: number, background = '#f00'): Sharp {
  const hole = { create: { width: width / 2, height, channels: 4, background: '#fff' } } as const;
  return plain(width, height, background).composite([{ input: hole, left: 0, top: 0, blend: 'dest-out' }]);
}

/** Its left half is white, the other black. */
export function halfWhite(width: number, height: number): Sharp {
  const white = { create: { width: width / 2, height, channels: 4, background: '#fff' } } as const;
  return plain(width, height, '#000').composite([{ input: white, left: 0, top: 0 }]);
}

/** A form with files, as clients send it. */
export function formOf(fields: Readonly<Record<string, string | Buffer>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string') form.set(name, value);
    else form.set(name, new Blob([new Uint8Array(value)], { type: 'image/png' }), `${name}.png`);
  return form;
}

/** The first pixel of a picture and the last of its first row, first channel only. */
export async function endsOf(file: Uint8Array): Promise<[number, number]> {
  const { data, info } = await sharp(file).raw().toBuffer({ resolveWithObject: true });
  return [data[0]!, data[(info.width - 1) * info.channels]!];
}
