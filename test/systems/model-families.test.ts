/** One worker per model family: images of the system equal the images that diffusers recorded for the same model. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';
import cogview4 from '../../tools/golden/vectors/pipelines/cogview4/recorded.json' with { type: 'json' };
import latentConsistency from '../../tools/golden/vectors/pipelines/latent-consistency/recorded.json' with { type: 'json' };
import stableDiffusion2 from '../../tools/golden/vectors/pipelines/stable-diffusion-2/recorded.json' with { type: 'json' };
import stableDiffusion3 from '../../tools/golden/vectors/pipelines/stable-diffusion-3/recorded.json' with { type: 'json' };
import withoutT5 from '../../tools/golden/vectors/pipelines/stable-diffusion-3-without-t5/recorded.json' with { type: 'json' };
import stableDiffusionXl from '../../tools/golden/vectors/pipelines/stable-diffusion-xl/recorded.json' with { type: 'json' };
import { make } from '../e2e/client.ts';
import { startSystem, stopSystem, type System } from '../e2e/system.ts';

const vectors = resolve(import.meta.dirname, '../../tools/golden/vectors/pipelines');
const recordings = {
  'stable-diffusion-2': stableDiffusion2.runs,
  'latent-consistency': latentConsistency.runs,
  'stable-diffusion-xl': stableDiffusionXl.runs,
  'stable-diffusion-3': stableDiffusion3.runs,
  'stable-diffusion-3-without-t5': withoutT5.runs,
  cogview4: cogview4.runs,
};
const names = Object.keys(recordings) as (keyof typeof recordings)[];

let system: System;
beforeAll(async () => {
  system = await startSystem({ parts: ['api', 'batch-former'] });
  const start = (name: string) =>
    system.start('worker', { MODEL_ID: name, MODEL_DIR: resolve(vectors, name, 'model'), NUM_THREADS: '1' });
  await Promise.all(names.map(start));
});
afterAll(() => stopSystem(system));

it.each(names)('draws the images of diffusers with %s, within 2 levels, in concurrent requests', async (model) => {
  const worst = await Promise.all(
    recordings[model].map(async ({ request, image }) => {
      const png = await make(system.url, {
        model,
        prompt: request.prompt,
        ...('negativePrompt' in request ? { negative_prompt: request.negativePrompt } : {}),
        ...('guidanceRescale' in request ? { guidance_rescale: request.guidanceRescale } : {}),
        size: `${request.width}x${request.height}`,
        num_inference_steps: request.numInferenceSteps,
        guidance_scale: request.guidanceScale,
        scheduler: request.scheduler,
        seed: request.seed,
      });
      const ours = await sharp(png).raw().toBuffer();
      const theirs = Buffer.from(image, 'base64');
      expect(ours).toHaveLength(theirs.length);
      return Math.max(...ours.map((value, at) => Math.abs(value - theirs[at]!)));
    }),
  );
  for (const difference of worst) expect(difference).toBeLessThanOrEqual(2);
});

/** Returns all log lines of the processes so far. */
function readLog() {
  const lines = readFileSync(system.logFile, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as { msg: string; [field: string]: unknown });
}

it('logs the file and the dtype of each part of a model', () => {
  const parts = readLog().filter(({ msg, model }) => msg === 'model part found' && model === 'latent-consistency');
  expect(parts.map(({ part, file, dtype }) => [part, file, dtype])).toEqual([
    ['text_encoder', 'text_encoder/model.onnx', 'fp32'],
    ['unet', 'unet/model.onnx', 'fp32'],
    ['vae_decoder', 'vae_decoder/model.onnx', 'fp32'],
    ['vae_encoder', 'vae_encoder/model.onnx', 'fp32'],
  ]);
});

it('logs a warning only for exports with one timestep for all rows', () => {
  const warnings = readLog().filter(({ msg }) => msg === 'the denoiser was exported with one timestep for all rows');
  expect(new Set(warnings.map(({ model }) => model))).toEqual(new Set(['latent-consistency', 'stable-diffusion-2']));
  expect(warnings[0]?.cost).toMatch(/one model call for each timestep/);
});
