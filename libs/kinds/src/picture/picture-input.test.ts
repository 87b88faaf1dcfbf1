import { describe, expect, it } from 'vitest';
import { pictureCost, type PictureInput, pictureSteps } from './picture-input.ts';

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

  it('counts the steps that are left for a picture that is drawn over', () => {
    expect(pictureCost({ ...input, image: true, strength: 0.5 })).toBe(128 * 64 * 3 * 5 * 2);
  });

  it('counts the pixels that come out of an upscaler', () => {
    expect(pictureCost({ ...input, upscale: 2 }) - pictureCost(input)).toBe(256 * 128 * 3);
  });
});

describe('the steps of a picture', () => {
  it.each([
    ['ddim', undefined, 10],
    ['ddim', 1, 10],
    ['ddim', 0.8, 8],
    // Some pipelines round down, and some up: this is the most.
    ['ddim', 0.75, 8],
    ['ddim', 0.01, 1],
    ['ddim', 0, 1],
    ['lcm', 0.3, 10],
  ])('of %s at strength %s are at most %s of ten', (scheduler, strength, steps) => {
    expect(pictureSteps({ numInferenceSteps: 10, scheduler, ...(strength !== undefined && { strength }) })).toBe(steps);
  });
});
