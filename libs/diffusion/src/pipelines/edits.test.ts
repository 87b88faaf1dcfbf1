/** Compares complete runs with an input image to those of diffusers, recorded by tools/golden/record-edits.py. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import latentConsistency from '../../../../tools/golden/vectors/edits/latent-consistency.json' with { type: 'json' };
import stableDiffusion2 from '../../../../tools/golden/vectors/edits/stable-diffusion-2.json' with { type: 'json' };
import inpainting2 from '../../../../tools/golden/vectors/edits/stable-diffusion-2-inpainting.json' with { type: 'json' };
import stableDiffusion3 from '../../../../tools/golden/vectors/edits/stable-diffusion-3.json' with { type: 'json' };
import withoutT5 from '../../../../tools/golden/vectors/edits/stable-diffusion-3-without-t5.json' with { type: 'json' };
import stableDiffusionXl from '../../../../tools/golden/vectors/edits/stable-diffusion-xl.json' with { type: 'json' };
import inpaintingXl from '../../../../tools/golden/vectors/edits/stable-diffusion-xl-inpainting.json' with { type: 'json' };
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';
import { attachmentsOf, type EditModel, openEditModel } from '../testing/recorded-edits.ts';
import { loadPipeline } from './load-pipeline.ts';

describe.each(
  Object.entries({
    'stable-diffusion-2': stableDiffusion2,
    'stable-diffusion-2-inpainting': inpainting2,
    'latent-consistency': latentConsistency,
    'stable-diffusion-xl': stableDiffusionXl,
    'stable-diffusion-xl-inpainting': inpaintingXl,
    'stable-diffusion-3': stableDiffusion3,
    'stable-diffusion-3-without-t5': withoutT5,
  }),
)('the pipeline %s', (name, { given, runs }) => {
  let model: EditModel;
  let pipeline: ImagePipeline;
  beforeAll(async () => {
    model = await openEditModel(name);
    pipeline = await loadPipeline({ directory: model.directory, id: 'tiny', threads: 1 });
  });
  afterAll(async () => {
    await pipeline.dispose();
    await model.remove();
  });

  it('lists the attachments that it takes', () => {
    expect(pipeline.card.takes).toEqual(name === 'latent-consistency' ? ['image'] : ['image', 'mask']);
  });

  it.each(runs.map((run) => [JSON.stringify(run.request), run] as const))(
    'has the latents of every step and the image of diffusers for %s',
    async (_, { request, latents, image }) => {
      const input = { negativePrompt: '', n: 1, previewEvery: 0, ...request };
      const attachments = await attachmentsOf(given, request);
      const [row] = (await pipeline.createRows({ id: 'request', input, attachments })) as [ImageRow];
      const { length } = row.latents;
      const expected = new Float32Array(Uint8Array.from(Buffer.from(latents, 'base64')).buffer);
      expect(expected).toHaveLength(row.totalSteps * length);
      while (!row.isDone) {
        const theirs = expected.subarray(row.step * length, (row.step + 1) * length);
        await pipeline.step([row]);
        const difference = Math.hypot(...row.latents.map((value, at) => value - theirs[at]!));
        expect(difference / Math.hypot(...theirs)).toBeLessThan(1e-4);
      }
      const { data, facts } = await pipeline.finish(row);
      expect(facts).toEqual({ seed: request.seed, width: request.width, height: request.height });
      const pixels = Buffer.from(image, 'base64');
      expect(data).toHaveLength(pixels.length);
      expect(Math.max(...data.map((value, at) => Math.abs(value - pixels[at]!)))).toBeLessThanOrEqual(2);
    },
  );
});
