import { expect, it } from 'vitest';
import { sizeLike } from './size-like.ts';

const defaults = { size: '128x128', num_inference_steps: 20, guidance_scale: 3, scheduler: 'ddim' };
const sizes = { min: 64, max: 256, multiple: 32 };

it.each([
  ['the default for a square, however large', { width: 3000, height: 3000 }, { width: 128, height: 128 }],
  ['the same for a small one', { width: 16, height: 16 }, { width: 128, height: 128 }],
  ['a shape that is kept, as far as multiples allow', { width: 4000, height: 3000 }, { width: 128, height: 96 }],
  ['the other way round', { width: 3000, height: 4000 }, { width: 96, height: 128 }],
  ['limits', { width: 10_000, height: 100 }, { width: 256, height: 64 }],
])('is %s', (_what, image, size) => {
  expect(sizeLike(image, { sizes, defaults })).toEqual(size);
});

it('rounds to multiples that are within limits which are no multiples', () => {
  const odd = { min: 50, max: 250, multiple: 32 };
  expect(sizeLike({ width: 100, height: 1 }, { sizes: odd, defaults })).toEqual({ width: 224, height: 64 });
});
