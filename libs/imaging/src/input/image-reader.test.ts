/** Tests the limits of the decoding process: a file that exceeds them is refused, and the next file is read. */
import sharp from 'sharp';
import { expect, it } from 'vitest';
import { ImageReader } from './image-reader.ts';

const maxPixels = 4_000_000;
const size = { width: 64, height: 64 };
const choose = () => ({ size, parts: ['image'] as const });
const chooseHuge = () => ({ size: { width: 16_000, height: 16_000 }, parts: ['image'] as const });

const smallPng = (): Promise<Buffer> =>
  sharp({ create: { ...size, channels: 3, background: '#f00' } })
    .png()
    .toBuffer();

const tooMuch = 'an image that takes too much memory or time to decode';

it.skipIf(process.platform !== 'linux')(
  'refuses a file that exceeds the memory limit, and reads the next',
  async () => {
    const reader = new ImageReader({ maxPixels });
    const refusal = await reader.read(await smallPng(), chooseHuge);
    expect(refusal).toMatchObject({
      status: 'refused',
      received: expect.stringMatching(/takes too much memory|broken/),
    });
    expect(await reader.read(await smallPng(), choose)).toMatchObject({ own: size });
  },
);

it('refuses a file that exceeds the CPU time limit, and reads the next', async () => {
  const reader = new ImageReader({ maxPixels, maxCpuMs: 1 });
  const large = await sharp({ create: { width: 2000, height: 2000, channels: 4, background: '#f008' } })
    .webp({ lossless: true })
    .toBuffer();
  expect(await reader.read(large, choose)).toMatchObject({ status: 'refused', received: tooMuch });
  const patient = new ImageReader({ maxPixels });
  expect(await patient.read(large, choose)).toMatchObject({ own: { width: 2000, height: 2000 } });
});

it('reads files one after the other, also after a caller rejects a size', async () => {
  const reader = new ImageReader({ maxPixels });
  const png = await smallPng();
  const unwanted = reader.read(Buffer.from(png), () => {
    throw new Error('not this size');
  });
  const others = Array.from({ length: 5 }, () => reader.read(Buffer.from(png), choose));
  await expect(unwanted).rejects.toThrow('not this size');
  for (const other of await Promise.all(others)) expect(other).toMatchObject({ own: size, fit: { size } });
  expect(await reader.read(new Uint8Array(0), choose)).toMatchObject({ status: 'refused' });
});

it('reports a process that cannot start as a fault of the server, with what it wrote', async () => {
  // Too little memory for the process itself: no file is to blame.
  const reader = new ImageReader({ maxPixels: -9_700_000 });
  await expect(reader.read(await smallPng(), choose)).rejects.toThrow(
    /the process that reads images (was|exited)[^:]*: \S/,
  );
});
