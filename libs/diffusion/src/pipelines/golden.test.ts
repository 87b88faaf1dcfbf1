/** Compares complete runs of tiny models to those of diffusers, recorded by tools/golden/record-*.py. */
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import cogview4 from '../../../../tools/golden/vectors/pipelines/cogview4/recorded.json' with { type: 'json' };
import latentConsistency from '../../../../tools/golden/vectors/pipelines/latent-consistency/recorded.json' with { type: 'json' };
import stableDiffusion2 from '../../../../tools/golden/vectors/pipelines/stable-diffusion-2/recorded.json' with { type: 'json' };
import stableDiffusion3 from '../../../../tools/golden/vectors/pipelines/stable-diffusion-3/recorded.json' with { type: 'json' };
import withoutT5 from '../../../../tools/golden/vectors/pipelines/stable-diffusion-3-without-t5/recorded.json' with { type: 'json' };
import stableDiffusionXl from '../../../../tools/golden/vectors/pipelines/stable-diffusion-xl/recorded.json' with { type: 'json' };
import { TorchGenerator } from '../random/torch-generator.ts';
import { loadPipeline } from './load-pipeline.ts';
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines');
const recordings = {
  'stable-diffusion-2': stableDiffusion2.runs,
  'latent-consistency': latentConsistency.runs,
  'stable-diffusion-xl': stableDiffusionXl.runs,
  'stable-diffusion-3': stableDiffusion3.runs,
  'stable-diffusion-3-without-t5': withoutT5.runs,
  cogview4: cogview4.runs,
};

describe.each(Object.entries(recordings))('the pipeline %s', (name, runs) => {
  let pipeline: ImagePipeline;
  beforeAll(async () => {
    pipeline = await loadPipeline({ directory: resolve(vectors, name, 'model'), id: 'tiny', threads: 1 });
  });
  afterAll(() => pipeline.dispose());

  it.each(runs.map((run) => [JSON.stringify(run.request), run] as const))(
    'has the latents of every step and the image of diffusers for %s',
    async (_, { request, latents, image }) => {
      const input = { negativePrompt: '', n: 1, previewEvery: 0, ...request };
      const [row] = (await pipeline.createRows({ id: 'request', input })) as [ImageRow];
      const { length } = row.latents;
      const expected = new Float32Array(Uint8Array.from(Buffer.from(latents, 'base64')).buffer);
      expect(expected).toHaveLength(row.totalSteps * length);
      while (!row.isDone) {
        const theirs = expected.subarray(row.step * length, (row.step + 1) * length);
        await pipeline.step([row]);
        const difference = Math.hypot(...row.latents.map((value, at) => value - theirs[at]!));
        // At most 3e-6 on the machine of the recording.
        expect(difference / Math.hypot(...theirs)).toBeLessThan(1e-3);
      }
      const { data, facts } = await pipeline.finish(row);
      expect(facts).toMatchObject({ seed: request.seed, width: request.width, height: request.height });
      const pixels = Buffer.from(image, 'base64');
      expect(data).toHaveLength(pixels.length);
      expect(Math.max(...data.map((value, at) => Math.abs(value - pixels[at]!)))).toBeLessThanOrEqual(2);
    },
  );
});

describe('given initial noise', () => {
  let pipeline: ImagePipeline;
  beforeAll(async () => {
    pipeline = await loadPipeline({ directory: resolve(vectors, 'stable-diffusion-2/model'), id: 'tiny', threads: 1 });
  });
  afterAll(() => pipeline.dispose());

  const { request, latents } = recordings['stable-diffusion-2'][0]!;
  const input = { negativePrompt: '', n: 1, previewEvery: 0, guidanceRescale: 0, ...request };

  it("replaces the seed's initial noise", async () => {
    const noise = new Float32Array(4 * 16 * 16);
    new TorchGenerator({ seed: request.seed }).fillNormal(noise);
    const other = { ...input, seed: request.seed + 1 };
    const [row] = await pipeline.createRows({ id: 'request', input: other, initialNoise: new Map([[0, noise]]) });
    while (!row!.isDone) await pipeline.step([row!]);
    const theirs = new Float32Array(Uint8Array.from(Buffer.from(latents, 'base64')).buffer).subarray(-noise.length);
    const difference = Math.hypot(...row!.latents.map((value, at) => value - theirs[at]!));
    expect(difference / Math.hypot(...theirs)).toBeLessThan(1e-3);
  });

  it.each([
    ['of another size', new Float32Array(7)],
    ['with a NaN', new Float32Array(4 * 16 * 16).fill(NaN)],
  ])('is refused %s', async (_, noise) => {
    await expect(
      pipeline.createRows({ id: 'request', input, initialNoise: new Map([[0, noise]]) }),
    ).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('expected 1024 finite numbers, 4 × 16 × 16'),
    });
  });
});
