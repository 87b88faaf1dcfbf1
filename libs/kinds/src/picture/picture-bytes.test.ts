import { describe, expect, it } from 'vitest';
import { heaviestPictureField, pictureBytes } from './picture-bytes.ts';
import type { PictureInput } from './picture-input.ts';

const input: PictureInput = {
  prompt: 'a fox',
  negativePrompt: '',
  width: 1024,
  height: 1024,
  n: 1,
  numInferenceSteps: 50,
  guidanceScale: 3,
  guidanceRescale: 0,
  seed: 1,
  scheduler: 'ddim',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 5,
};
const mebibyte = 2 ** 20;

describe('the bytes of a request', () => {
  it('are at least those of the worst picture, of each preview and of a checkpoint', () => {
    // Noise of this size is a file of 3.04 bytes a pixel; its latents in fp32 are 1/16 of a value for each of 4 channels.
    expect(pictureBytes({ ...input, previewEvery: 0 })).toBeGreaterThan((3.04 + 0.25) * 2 ** 20);
    const previews = pictureBytes(input) - pictureBytes({ ...input, previewEvery: 0 });
    // A preview of 512 × 512 pixels, each 0.40 bytes: there are nine of them.
    expect(previews).toBeGreaterThan(9 * 0.4 * 2 ** 18);
  });

  it('stay below what an installation can hold for what people ask for, and are far above it for 2,000 previews', () => {
    expect(pictureBytes({ ...input, n: 4 })).toBeLessThan(40 * mebibyte);
    expect(pictureBytes({ ...input, n: 10, numInferenceSteps: 200, previewEvery: 1 })).toBeGreaterThan(400 * mebibyte);
  });

  it('grow with the prompts', () => {
    expect(pictureBytes({ ...input, prompt: '🦊'.repeat(4000) }) - pictureBytes(input)).toBeGreaterThan(2 * 15_000);
  });

  it('count the larger picture', () => {
    const plain = pictureBytes({ ...input, previewEvery: 0 });
    const larger = pictureBytes({ ...input, previewEvery: 0, upscale: 4 });
    expect(larger - plain).toBeGreaterThan(15 * 3.04 * 2 ** 20);
  });

  it('grow with what files say of their pictures, if they do', () => {
    const long = { ...input, n: 2, prompt: '&'.repeat(4000) };
    const said = pictureBytes({ ...long, metadata: true }) - pictureBytes(long);
    // In each file of a JPEG: 8000 bytes of UTF-16, 20,000 of XML, and a caption.
    expect(said).toBeGreaterThan(2 * 33_000);
  });

  it('say which field to lower', () => {
    expect(heaviestPictureField({ ...input, n: 2, upscale: 4 })).toBe('upscale');
    expect(heaviestPictureField({ ...input, n: 10, numInferenceSteps: 200, previewEvery: 1 })).toBe('preview');
    expect(heaviestPictureField({ ...input, n: 10 })).toBe('n');
    expect(heaviestPictureField(input)).toBe('size');
  });
});
