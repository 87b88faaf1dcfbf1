import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import recorded from '../../../../tools/golden/vectors/clip-image.json' with { type: 'json' };
import { clipImageOf, readClipImageSettings } from './clip-image.ts';

const { settings, stride, cases } = recorded;

describe('CLIP preprocessing', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'darkroom-clip-image-'));
    await mkdir(join(directory, 'feature_extractor'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function read(changes: Readonly<Record<string, unknown>> = {}) {
    const config = JSON.stringify({ ...settings, ...changes });
    await writeFile(join(directory, 'feature_extractor/preprocessor_config.json'), config);
    return readClipImageSettings(directory);
  }

  it.each(cases)('are those of transformers, of $width x $height', async ({ width, height, dims, values }) => {
    const pixels = clipImageOf({ data: image(width, height), width, height }, await read());
    expect(pixels).toHaveLength(dims.reduce((product, side) => product * side));
    const sampled = pixels.filter((_, at) => at % stride === 0);
    const differences = sampled.map((value, at) => Math.abs(value - values[at]!));
    // One level of 255 is at least 0.014.
    expect(Math.max(...differences)).toBeLessThan(1e-6);
  });

  it('reads the same settings from newer files', async () => {
    const newer = { size: { shortest_edge: 224 }, crop_size: { height: 224, width: 224 }, rescale_factor: 1 / 255 };
    expect(await read(newer)).toEqual(await read());
  });

  it.each([
    [{ resample: 2 }, 'resample: is not supported, expected 3 (bicubic); it is 2'],
    [{ do_center_crop: false }, 'do_center_crop: is not supported, expected true; it is false'],
  ])('refuses %j', async (changes, problem) => {
    const message = `feature_extractor/preprocessor_config.json: ${problem}`;
    await expect(read(changes)).rejects.toMatchObject({ code: 'model_unsupported', message });
  });
});

/** Draws the image of tools/golden/record-clip-image.py. */
function image(width: number, height: number): Uint8Array {
  return Uint8Array.from({ length: width * height * 3 }, (_, at) => {
    const [color, x, y] = [at % 3, Math.floor(at / 3) % width, Math.floor(at / 3 / width)];
    return x * x * (color + 1) + 7 * y * Math.floor(x / 9) + 31 * y * color;
  });
}
