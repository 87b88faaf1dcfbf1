/** Models that diffusers' own exporter of 2022 wrote: without config.json, as those of Stable Diffusion 1.4 and 1.5 are. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { layOutAsIn2022 } from '@darkroom/testing';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { describeModel } from '../model/describe-model.ts';
import { readModelDirectory } from '../model/model-directory.ts';
import { loadPipeline } from './load-pipeline.ts';

const source = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/stable-diffusion-2/model');

/** The same weights, in today's layout. */
let modern: string;
let old: string;
beforeEach(async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'darkroom-2022-'));
  onTestFinished(() => rm(scratch, { recursive: true }));
  [modern, old] = [join(scratch, 'modern'), join(scratch, 'old')];
  await cp(source, modern, { recursive: true });
  await cp(source, old, { recursive: true });
  // What all published models of the class have, and nothing in the graphs says.
  await edit('vae_decoder/config.json', { scaling_factor: 0.18215 });
});

async function edit(file: string, change: object): Promise<void> {
  const json = JSON.parse(await readFile(join(modern, file), 'utf8')) as object;
  await writeFile(join(modern, file), JSON.stringify({ ...json, ...change }));
}

async function draw(directory: string) {
  const pipeline = await loadPipeline({ directory, threads: 1 });
  const size = { width: 64, height: 64, n: 1, numInferenceSteps: 3 };
  const asked = { prompt: 'a cat', negativePrompt: '', seed: 1, guidanceScale: 3, scheduler: 'ddim', previewEvery: 0 };
  const [row] = await pipeline.createRows({ id: 'request', input: { ...size, ...asked } });
  while (row!.step < row!.totalSteps) await pipeline.step([row!]);
  const { data } = await pipeline.finish(row!);
  await pipeline.dispose();
  return data;
}

it.each(['float', 'int64'] as const)(
  'draws what its weights draw in another layout, %s timesteps',
  async (timestep) => {
    layOutAsIn2022(old, { timestep });
    expect(Buffer.compare(await draw(old), await draw(modern))).toBe(0);
  },
);

it('is read from its graphs, and as Stable Diffusion 1.x where they do not say it', async () => {
  layOutAsIn2022(old, { timestep: 'int64' });
  const { card, denoiser, latents } = await readModelDirectory(old);
  const expected = await readModelDirectory(modern);
  const { configFile, sampleSize } = { configFile: 'unet/model.onnx', sampleSize: [64, 64] };
  expect(denoiser).toEqual({ ...expected.denoiser, configFile, sampleSize });
  expect(latents).toEqual(expected.latents);
  expect(card.sizes).toEqual({ multiple: 4, min: 64, max: 256, default: { width: 128, height: 128 } });
});

it('says in its darkroom.json what it was made for', async () => {
  layOutAsIn2022(old, { timestep: 'int64' });
  const sizes = { min: 16, max: 64, default: { width: 32, height: 32 } };
  await writeFile(join(old, 'darkroom.json'), JSON.stringify({ sizes }));
  expect((await readModelDirectory(old)).card.sizes).toEqual((await readModelDirectory(modern)).card.sizes);
});

it('is described, with the weights beside its UNet', async () => {
  layOutAsIn2022(old, { timestep: 'int64' });
  const { graphs, hasTimestepPerRow } = describeModel(await readModelDirectory(old));
  expect(graphs.map(({ files, dtype }) => [...files, dtype])).toEqual([
    ['text_encoder/model.onnx', 'fp32'],
    ['unet/model.onnx', 'unet/weights.pb', 'fp32'],
    ['vae_decoder/model.onnx', 'fp32'],
    ['vae_encoder/model.onnx', 'fp32'],
  ]);
  expect(hasTimestepPerRow).toBe(true);
});

it('has either all of its config.json files or none', async () => {
  layOutAsIn2022(old, { timestep: 'int64' });
  await cp(join(modern, 'unet/config.json'), join(old, 'unet/config.json'));
  await expect(readModelDirectory(old)).rejects.toThrow('vae_decoder/config.json: is missing');
});

it('is refused where its graphs are not of that exporter', async () => {
  layOutAsIn2022(old, { timestep: 'int64' });
  await cp(join(old, 'vae_decoder/model.onnx'), join(old, 'unet/model.onnx'));
  const lack = 'has neither a config.json beside it nor a convolution of its input sample';
  await expect(readModelDirectory(old)).rejects.toMatchObject({
    code: 'model_unsupported',
    message: `unet/model.onnx: ${lack}, so that what its config.json would say is not known`,
  });
});

it.each(['StableDiffusionOnnxPipeline', 'OnnxStableDiffusionPipeline'])('may be called %s', async (name) => {
  layOutAsIn2022(old, { timestep: 'int64' });
  await writeFile(join(old, 'model_index.json'), JSON.stringify({ _class_name: name }));
  expect((await readModelDirectory(old)).pipelineClass).toBe(name);
});

it('of another class lacks its config.json', async () => {
  layOutAsIn2022(old, { timestep: 'int64' });
  await writeFile(join(old, 'model_index.json'), JSON.stringify({ _class_name: 'StableDiffusionPipeline' }));
  await expect(readModelDirectory(old)).rejects.toThrow('config.json: is missing');
});
