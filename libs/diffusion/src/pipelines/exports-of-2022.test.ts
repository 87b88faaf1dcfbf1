/**
 * Tests models such as Stable Diffusion 1.4 and 1.5 from diffusers' own exporter of 2022, which wrote no config.json.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { convertTo2022Layout } from '@darkroom/testing';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { describeModel } from '../model/describe-model.ts';
import { readModelDirectory } from '../model/model-directory.ts';
import { loadPipeline } from './load-pipeline.ts';

const source = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines/stable-diffusion-2/model');

/** Directory of the model in today's layout; `old` has the same weights in the layout of 2022. */
let modern: string;
let old: string;
beforeEach(async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'darkroom-2022-'));
  onTestFinished(() => rm(scratch, { recursive: true }));
  [modern, old] = [join(scratch, 'modern'), join(scratch, 'old')];
  await cp(source, modern, { recursive: true });
  await cp(source, old, { recursive: true });
  // Exports of 2022 do not contain this value. All published models of the class have it.
  await edit('vae_decoder/config.json', { scaling_factor: 0.18215 });
});

async function edit(file: string, change: object): Promise<void> {
  const json = JSON.parse(await readFile(join(modern, file), 'utf8')) as object;
  await writeFile(join(modern, file), JSON.stringify({ ...json, ...change }));
}

async function generate(directory: string) {
  const pipeline = await loadPipeline({ directory, threads: 1 });
  const size = { width: 64, height: 64, n: 1, numInferenceSteps: 3 };
  const request = {
    prompt: 'a cat',
    negativePrompt: '',
    seed: 1,
    guidanceScale: 3,
    scheduler: 'ddim',
    previewEvery: 0,
  };
  const [row] = await pipeline.createRows({ id: 'request', input: { ...size, ...request } });
  while (row!.step < row!.totalSteps) await pipeline.step([row!]);
  const { data } = await pipeline.finish(row!);
  await pipeline.dispose();
  return data;
}

it.each(['float', 'int64'] as const)(
  "generates the same image as the same weights in today's layout, with %s timesteps",
  async (timestep) => {
    convertTo2022Layout(old, { timestep });
    expect(Buffer.compare(await generate(old), await generate(modern))).toBe(0);
  },
);

it('reads the configuration from the graphs, and takes missing values from Stable Diffusion 1.x', async () => {
  convertTo2022Layout(old, { timestep: 'int64' });
  const { card, denoiser, latents } = await readModelDirectory(old);
  const expected = await readModelDirectory(modern);
  const { configFile, sampleSize } = { configFile: 'unet/model.onnx', sampleSize: [64, 64] };
  expect(denoiser).toEqual({ ...expected.denoiser, configFile, sampleSize });
  expect(latents).toEqual(expected.latents);
  expect(card.sizes).toEqual({ multiple: 4, min: 64, max: 256, default: { width: 128, height: 128 } });
});

it('reads image sizes from darkroom.json', async () => {
  convertTo2022Layout(old, { timestep: 'int64' });
  const sizes = { min: 16, max: 64, default: { width: 32, height: 32 } };
  await writeFile(join(old, 'darkroom.json'), JSON.stringify({ sizes }));
  expect((await readModelDirectory(old)).card.sizes).toEqual((await readModelDirectory(modern)).card.sizes);
});

it('lists the weights file beside the UNet', async () => {
  convertTo2022Layout(old, { timestep: 'int64' });
  const { graphs, hasTimestepPerRow } = describeModel(await readModelDirectory(old));
  expect(graphs.map(({ files, dtype }) => [...files, dtype])).toEqual([
    ['text_encoder/model.onnx', 'fp32'],
    ['unet/model.onnx', 'unet/weights.pb', 'fp32'],
    ['vae_decoder/model.onnx', 'fp32'],
    ['vae_encoder/model.onnx', 'fp32'],
  ]);
  expect(hasTimestepPerRow).toBe(true);
});

it('refuses a model with only some of its config.json files', async () => {
  convertTo2022Layout(old, { timestep: 'int64' });
  await cp(join(modern, 'unet/config.json'), join(old, 'unet/config.json'));
  await expect(readModelDirectory(old)).rejects.toThrow('vae_decoder/config.json: is missing');
});

it('refuses a UNet graph from another exporter without config.json', async () => {
  convertTo2022Layout(old, { timestep: 'int64' });
  await cp(join(old, 'vae_decoder/model.onnx'), join(old, 'unet/model.onnx'));
  const problem = 'has neither a config.json beside it nor a convolution of its input sample';
  await expect(readModelDirectory(old)).rejects.toMatchObject({
    code: 'model_unsupported',
    message: `unet/model.onnx: ${problem}, so its configuration cannot be determined`,
  });
});

it.each(['StableDiffusionOnnxPipeline', 'OnnxStableDiffusionPipeline'])(
  'accepts a model with the class name %s',
  async (name) => {
    convertTo2022Layout(old, { timestep: 'int64' });
    await writeFile(join(old, 'model_index.json'), JSON.stringify({ _class_name: name }));
    expect((await readModelDirectory(old)).pipelineClass).toBe(name);
  },
);

it('refuses a model of another class without config.json', async () => {
  convertTo2022Layout(old, { timestep: 'int64' });
  await writeFile(join(old, 'model_index.json'), JSON.stringify({ _class_name: 'StableDiffusionPipeline' }));
  await expect(readModelDirectory(old)).rejects.toThrow('config.json: is missing');
});
