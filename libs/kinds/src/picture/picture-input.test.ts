import { describe, expect, it } from 'vitest';
import { pictureCost, type PictureInput } from './picture-input.ts';

const input: PictureInput = {
  prompt: 'a fox',
  negativePrompt: '',
  width: 128,
  height: 64,
  n: 3,
  numInferenceSteps: 10,
  guidanceScale: 3,
  guidanceRescale: 0,
  seed: 1,
  scheduler: 'ddim',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 5,
};

describe('the cost of a picture', () => {
  it.each([
    [3, 2],
    [1.01, 2],
    [1, 1],
    [0, 1],
  ])('counts the rows of the model: at guidance %s there are %s', (guidanceScale, rows) => {
    expect(pictureCost({ ...input, guidanceScale })).toBe(128 * 64 * 3 * 10 * rows);
  });

  it('counts the pixels that come out of an upscaler', () => {
    expect(pictureCost({ ...input, upscale: 2 }) - pictureCost(input)).toBe(256 * 128 * 3);
  });
});
