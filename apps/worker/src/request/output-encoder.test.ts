import { readMetadata } from '@darkroom/client';
import { encodePicture } from '@darkroom/imaging';
import type { PictureInput } from '@darkroom/kinds';
import { expect, it } from 'vitest';
import { asTheyAre, encoderOf, withRecipes } from './output-encoder.ts';

const input: PictureInput = {
  prompt: 'a fox',
  negativePrompt: '',
  width: 8,
  height: 8,
  n: 2,
  numInferenceSteps: 10,
  guidanceScale: 3,
  guidanceRescale: 0,
  seed: 1,
  scheduler: 'ddim',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 5,
};
const output = { data: new Uint8Array(8 * 8 * 3).fill(77), facts: { width: 8, height: 8, seed: 2 } };
const encoder = encoderOf('picture', { pngLevel: 4, modelId: 'tiny' });

it.each(['png', 'jpeg', 'webp'] as const)('a %s says how it was made only if it is to', async (outputFormat) => {
  const plain = await encoder.encodeOutput({ ...input, outputFormat }, output);
  expect(plain).toEqual(await encodePicture(output, { outputFormat, outputCompression: 100 }));
  expect(readMetadata(plain.data)).toBeUndefined();
  const said = await encoder.encodeOutput({ ...input, outputFormat, metadata: true }, output);
  expect(readMetadata(said.data)).toMatchObject({ model: 'tiny', prompt: 'a fox', seed: 2, size: '8x8' });
});

it('the file of another server or a module says it too, and a text never does', async () => {
  const { data, contentType } = await encoder.encodeOutput(input, output);
  const theirs = withRecipes(asTheyAre, 'theirs');
  const made = { data, contentType, facts: {} };
  expect((await theirs.encodeOutput(input, made)).data).toBe(data);
  const said = await theirs.encodeOutput({ ...input, metadata: true }, made);
  expect(readMetadata(said.data)).toMatchObject({ model: 'theirs', seed: 1 });
  const text = { data: Buffer.from('a text'), facts: {} };
  expect((await theirs.encodeOutput({ prompt: [1] }, text)).data).toBe(text.data);
});
