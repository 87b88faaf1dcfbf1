import { imageInput } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { imageCost, type ImageInput, imageSteps } from './image-input.ts';

const input: ImageInput = { ...imageInput, width: 128, height: 64, n: 3, numInferenceSteps: 10, guidanceScale: 3 };

describe('the cost of an image', () => {
  it.each([
    [3, 2],
    [1.01, 2],
    [1, 1],
    [0, 1],
  ])('counts model rows: guidance %s has %s', (guidanceScale, rows) => {
    expect(imageCost({ ...input, guidanceScale })).toBe(128 * 64 * 3 * 10 * rows);
  });

  it('counts the share of the steps that strength leaves for an input image', () => {
    expect(imageCost({ ...input, image: true, strength: 0.5 })).toBe(128 * 64 * 3 * 5 * 2);
  });

  it('counts the output pixels of an upscaler', () => {
    expect(imageCost({ ...input, upscale: 2 }) - imageCost(input)).toBe(256 * 128 * 3);
  });
});

describe('the steps of an image', () => {
  it.each([
    ['ddim', undefined, 10],
    ['ddim', 1, 10],
    ['ddim', 0.8, 8],
    // Some pipelines round down and some up: this is the maximum.
    ['ddim', 0.75, 8],
    ['ddim', 0.01, 1],
    ['ddim', 0, 1],
    ['lcm', 0.3, 10],
  ])('of %s at strength %s are at most %s of ten', (scheduler, strength, steps) => {
    expect(imageSteps({ numInferenceSteps: 10, scheduler, ...(strength !== undefined && { strength }) })).toBe(steps);
  });
});
