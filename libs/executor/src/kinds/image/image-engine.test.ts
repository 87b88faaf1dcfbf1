import { readMetadata } from '@darkroom/client';
import { encodeImage } from '@darkroom/imaging';
import type { ImageInput } from '@darkroom/kinds';
import { imageInput } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { imageEngine } from './image-engine.ts';

const input: ImageInput = {
  ...imageInput,
  width: 8,
  height: 8,
  n: 2,
  numInferenceSteps: 10,
  guidanceScale: 3,
  seed: 1,
};
const output = { data: new Uint8Array(8 * 8 * 3).fill(77), facts: { width: 8, height: 8, seed: 2 } };
const request = (changes: Partial<ImageInput>) => ({ model: 'tiny', input: { ...input, ...changes } });

it.each(['png', 'jpeg', 'webp'] as const)(
  'writes generation metadata to a %s only on request',
  async (outputFormat) => {
    const plain = await imageEngine.encode(output, request({ outputFormat }));
    expect(plain).toEqual(await encodeImage(output, { outputFormat, outputCompression: 100 }));
    expect(readMetadata(plain.data)).toBeUndefined();
    const encoded = await imageEngine.encode(output, request({ outputFormat, metadata: true }));
    expect(readMetadata(encoded.data)).toMatchObject({ model: 'tiny', prompt: 'a fox', seed: 2, size: '8x8' });
  },
);

it('passes files from upstreams and modules through, with generation metadata on request', async () => {
  const { data, contentType } = await imageEngine.encode(output, request({}));
  const file = { data, contentType, facts: {} };
  expect((await imageEngine.encode(file, request({}))).data).toBe(data);
  const encoded = await imageEngine.encode(file, request({ metadata: true }));
  expect(readMetadata(encoded.data)).toMatchObject({ model: 'tiny', seed: 1 });
  expect(await imageEngine.encodePreview?.(file)).toEqual({ data, contentType });
});
