import { readMetadata } from '@darkroom/client';
import { encodeImage } from '@darkroom/imaging';
import type { ImageInput } from '@darkroom/kinds';
import { expect, it } from 'vitest';
import { passThrough, encoderOf, addGenerationMetadata } from './output-encoder.ts';

const input: ImageInput = {
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
const encoder = encoderOf('image', 'tiny');

it.each(['png', 'jpeg', 'webp'] as const)(
  'writes generation metadata to a %s only on request',
  async (outputFormat) => {
    const plain = await encoder.encodeOutput({ ...input, outputFormat }, output);
    expect(plain).toEqual(await encodeImage(output, { outputFormat, outputCompression: 100 }));
    expect(readMetadata(plain.data)).toBeUndefined();
    const encoded = await encoder.encodeOutput({ ...input, outputFormat, metadata: true }, output);
    expect(readMetadata(encoded.data)).toMatchObject({ model: 'tiny', prompt: 'a fox', seed: 2, size: '8x8' });
  },
);

it('writes generation metadata to files from upstreams and modules too, and never to a text', async () => {
  const { data, contentType } = await encoder.encodeOutput(input, output);
  const external = addGenerationMetadata(passThrough, 'external');
  const made = { data, contentType, facts: {} };
  expect((await external.encodeOutput(input, made)).data).toBe(data);
  const encoded = await external.encodeOutput({ ...input, metadata: true }, made);
  expect(readMetadata(encoded.data)).toMatchObject({ model: 'external', seed: 1 });
  const text = { data: Buffer.from('a text'), facts: {} };
  expect((await external.encodeOutput({ prompt: [1] }, text)).data).toBe(text.data);
});
