/** What a process of the API takes of memory for pictures that come in: a part of what comes, whatever number comes at once. */
import { readFile } from 'node:fs/promises';
import { publishModel } from '@darkroom/store';
import type { PictureCard } from '@darkroom/kinds';
import sharp, { type Noise } from 'sharp';
import { expect, it } from 'vitest';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { openSystem, type System } from '../e2e/system.ts';
import { heapEnvironment, memoryOf } from './heap-of.ts';

const uploads = 20;
const mebibyte = 2 ** 20;

/** 16 M pixels, turned by EXIF, which takes all of its pixels to turn. */
async function largePicture(): Promise<Buffer> {
  const noise: Noise = { type: 'gaussian', mean: 128, sigma: 30 };
  const grey = await sharp({ create: { width: 4096, height: 4096, channels: 3, background: '#000', noise } })
    .withMetadata({ orientation: 6 })
    .png({ compressionLevel: 1 })
    .toBuffer();
  return grey;
}

/** The most that it ever had, MiB. */
async function peakOf(system: System): Promise<number> {
  const status = await readFile(`/proc/${system.part('api').process.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

it.skipIf(process.platform !== 'linux')(
  '20 uploads of 16 M pixels at once are taken one after the other, and nothing of them is kept',
  async () => {
    const system = await openSystem({ parts: [{ name: 'api', environment: heapEnvironment }] });
    const taking: PictureCard = { ...card, takes: ['image', 'mask'] };
    await publishModel(system.store, taking);
    const picture = await largePicture();
    const before = await peakOf(system);
    const send = async (): Promise<number> => {
      const body = new FormData();
      body.set('prompt', 'x');
      body.set('image', new Blob([new Uint8Array(picture)], { type: 'image/png' }), 'picture.png');
      const response = await fetch(`${system.url}/v1/predict`, { method: 'POST', body });
      await response.arrayBuffer();
      return response.status;
    };
    const statuses = await Promise.all(Array.from({ length: uploads }, send));
    expect(new Set(statuses)).toEqual(new Set([202]));
    const grown = (await peakOf(system)) - before;
    const { external, arrayBuffers } = await memoryOf(system.part('api'));
    console.info(
      `${uploads} files of ${Math.round(picture.byteLength / mebibyte)} MiB: ${Math.round(grown)} MiB at most, ${Math.round((external + arrayBuffers) / mebibyte)} MiB kept`,
    );
    // Two files and two decoded pictures, and what the decoder needs beside them; all at once would be more than the files alone.
    expect(grown).toBeLessThan(500);
    expect(picture.byteLength * uploads).toBeGreaterThan(700 * mebibyte);
    expect(external / mebibyte).toBeLessThan(40);
  },
  300_000,
);
