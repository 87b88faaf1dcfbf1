/** Memory of the API for concurrent uploads: bounded, because images are decoded one after another. */
import { readFile } from 'node:fs/promises';
import { publishModel } from '@darkroom/store';
import type { ImageCard } from '@darkroom/kinds';
import sharp, { type Noise } from 'sharp';
import { expect, it } from 'vitest';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { openSystem, type System } from '../e2e/system.ts';
import { heapEnvironment, memoryOf } from './heap-of.ts';

const uploads = 20;
const mebibyte = 2 ** 20;

/** Creates an image of 16 M pixels with an EXIF rotation, which needs all pixels in memory. */
async function largeImage(): Promise<Buffer> {
  const noise: Noise = { type: 'gaussian', mean: 128, sigma: 30 };
  const grey = await sharp({ create: { width: 4096, height: 4096, channels: 3, background: '#000', noise } })
    .withMetadata({ orientation: 6 })
    .png({ compressionLevel: 1 })
    .toBuffer();
  return grey;
}

/** Returns the peak resident memory of the API, MiB. */
async function peakOf(system: System): Promise<number> {
  const status = await readFile(`/proc/${system.part('api').process.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

it.skipIf(process.platform !== 'linux')(
  'decodes 20 concurrent uploads of 16 M pixels one after another, and frees their memory',
  async () => {
    const system = await openSystem({ parts: [{ name: 'api', environment: heapEnvironment }] });
    const taking: ImageCard = { ...card, takes: ['image', 'mask'] };
    await publishModel(system.store, taking);
    const image = await largeImage();
    const before = await peakOf(system);
    const send = async (): Promise<number> => {
      const body = new FormData();
      body.set('prompt', 'x');
      body.set('image', new Blob([new Uint8Array(image)], { type: 'image/png' }), 'image.png');
      const response = await fetch(`${system.url}/v1/predict`, { method: 'POST', body });
      await response.arrayBuffer();
      return response.status;
    };
    const statuses = await Promise.all(Array.from({ length: uploads }, send));
    expect(new Set(statuses)).toEqual(new Set([202]));
    const grown = (await peakOf(system)) - before;
    const { external, arrayBuffers } = await memoryOf(system.part('api'));
    console.info(
      `${uploads} files of ${Math.round(image.byteLength / mebibyte)} MiB: peak ${Math.round(grown)} MiB,`,
      `${Math.round((external + arrayBuffers) / mebibyte)} MiB retained`,
    );
    // Two files, two decoded images and the decoder's buffers. All files together would exceed 700 MiB.
    expect(grown).toBeLessThan(500);
    expect(image.byteLength * uploads).toBeGreaterThan(700 * mebibyte);
    expect(external / mebibyte).toBeLessThan(40);
  },
  300_000,
);
