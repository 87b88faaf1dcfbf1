import { expect, it } from 'vitest';
import type { ImageInput } from './image-input.ts';
import { recipeOf } from './image-recipe.ts';
import { imageRequestSchema } from './image-request-schema.ts';

const input: ImageInput = {
  prompt: 'a fox',
  negativePrompt: 'an owl',
  width: 128,
  height: 64,
  n: 3,
  numInferenceSteps: 10,
  guidanceScale: 3,
  guidanceRescale: 0.5,
  seed: 1,
  scheduler: 'ddim',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 5,
  metadata: true,
};

it('returns a request body for one image, with its own seed', () => {
  const recipe = recipeOf('tiny', input, 3);
  expect(recipe).toEqual({
    model: 'tiny',
    prompt: 'a fox',
    negative_prompt: 'an owl',
    size: '128x64',
    num_inference_steps: 10,
    guidance_scale: 3,
    guidance_rescale: 0.5,
    seed: 3,
    scheduler: 'ddim',
  });
  expect(imageRequestSchema.parse(recipe)).toEqual(recipe);
});

it('includes strength, loras and upscale', () => {
  const more = { strength: 0.6, loras: [{ id: 'ink', scale: 0.8 }], upscale: 2 } as const;
  expect(recipeOf('tiny', { ...input, ...more }, 3)).toMatchObject(more);
});
