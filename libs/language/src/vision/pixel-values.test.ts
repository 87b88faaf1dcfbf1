import type { RawImage } from '@darkroom/imaging';
import { expect, it } from 'vitest';
import type { ImageConfig } from '../model/image-config.ts';
import { tilesOf } from './pixel-values.ts';

const config: ImageConfig = {
  layout: 'llava',
  tokenId: 3,
  perTile: 1,
  minImages: 0,
  maxImages: 8,
  side: 32,
  fit: { type: 'crop', shortestSide: 32 },
  filter: 'bicubic',
  scale: 1 / 255,
  mean: [0, 0, 0],
  deviation: [1, 1, 1],
};

const grey = (width: number, height: number): RawImage => ({
  data: new Uint8Array(3 * width * height).fill(255),
  width,
  height,
});

const tilesIn = (image: RawImage, changes: Partial<ImageConfig> = {}) =>
  [...tilesOf(image, { ...config, ...changes })].filter((tile) => tile !== undefined);

it('a square of any size fills the tile, without a black row', () => {
  for (let side = 1; side <= 400; side++) {
    const [tile] = tilesIn(grey(side, side));
    expect([side, tile?.every((value) => value === 1)]).toEqual([side, true]);
  }
});

it('a long narrow image is scaled only where the tile shows it', () => {
  const before = process.memoryUsage().arrayBuffers;
  const [tile] = tilesIn(grey(1, 1536), { side: 336, fit: { type: 'crop', shortestSide: 336 } });
  expect(tile).toHaveLength(3 * 336 * 336);
  // The full image has 336 × 516,096 pixels: 520 MB.
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50e6);
});

it('a tile beyond the scaled image is black there', () => {
  const [tile] = tilesIn(grey(16, 16), { fit: { type: 'crop', shortestSide: 16 } });
  expect(tile?.filter((value) => value === 1)).toHaveLength(3 * 16 * 16);
  expect([tile?.[0], tile?.[16 * 32 + 16]]).toEqual([0, 1]);
});
