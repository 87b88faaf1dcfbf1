/** Tests loading and unloading of encoders, with every kind of pipeline. */
import { type NonEmpty } from '@darkroom/core';
import { cpSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import recorded from '../../../../tools/golden/vectors/edits/stable-diffusion-2.json' with { type: 'json' };
import { attachmentsOf } from '../testing/recorded-edits.ts';
import { loadPipeline } from './load-pipeline.ts';
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines');

function copyOf(model: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-low-memory-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  cpSync(model, directory, { recursive: true });
  return directory;
}

async function load(directory: string, hasLowMemory: boolean): Promise<ImagePipeline> {
  const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1, hasLowMemory });
  onTestFinished(() => pipeline.dispose());
  return pipeline;
}

async function rowOf(pipeline: ImagePipeline, prompt: string): Promise<ImageRow> {
  const { defaultScheduler: scheduler } = pipeline.card;
  const input = { prompt, negativePrompt: 'a house', width: 32, height: 32, n: 1, numInferenceSteps: 3, scheduler };
  const request = { ...input, guidanceScale: 3, seed: 7, previewEvery: 0 };
  const [row] = await pipeline.createRows({ id: prompt, input: request });
  return row!;
}

async function finish(pipeline: ImagePipeline, rows: NonEmpty<ImageRow>): Promise<Uint8Array[]> {
  await pipeline.settle();
  while (rows.some(({ isDone }) => !isDone)) await pipeline.step(rows);
  const images: Uint8Array[] = [];
  for (const row of rows) images.push((await pipeline.finish(row)).data);
  return images;
}

describe.each([
  ['stable-diffusion-2', ['text_encoder']],
  ['latent-consistency', ['text_encoder']],
  ['stable-diffusion-xl', ['text_encoder', 'text_encoder_2']],
  ['stable-diffusion-3', ['text_encoder', 'text_encoder_3']],
  ['cogview4', ['text_encoder']],
])('with low memory the pipeline %s', (name, encoders) => {
  const model = join(vectors, name, 'model');
  const prompts = ['a cat', 'a dog', 'a cat'];

  it('makes the same images, to the byte', async () => {
    const [much, little] = [await load(model, false), await load(model, true)];
    for (const prompt of prompts) {
      const [image] = await finish(much, [await rowOf(much, prompt)]);
      expect(Buffer.compare(image!, (await finish(little, [await rowOf(little, prompt)]))[0]!)).toBe(0);
    }
  });

  // Deleting the file shows which graphs are loaded: only loading needs the file.
  it.each(encoders)(
    'unloads %s between prompts, and fails only the requests that need it if it cannot be loaded',
    async (part) => {
      const directory = copyOf(model);
      const pipeline = await load(directory, true);
      const file = join(directory, part, 'model.onnx');
      const cat = await rowOf(pipeline, 'a cat');
      renameSync(file, `${file}.away`);
      // All prompts of one round are encoded before anything is unloaded.
      await rowOf(pipeline, 'a tree');
      await pipeline.settle();
      await expect(rowOf(pipeline, 'a dog')).rejects.toMatchObject({
        code: 'model_unsupported',
        message: `${part}/model.onnx: is missing`,
      });
      // Cached prompts are not encoded again, and running rows continue.
      const again = await rowOf(pipeline, 'a cat');
      const [first, second] = await finish(pipeline, [cat, again]);
      expect(Buffer.compare(first!, second!)).toBe(0);
      renameSync(`${file}.away`, file);
      await finish(pipeline, [await rowOf(pipeline, 'a dog')]);
    },
  );

  it.each(encoders)('keeps %s loaded without the option', async (part) => {
    const directory = copyOf(model);
    const pipeline = await load(directory, false);
    rmSync(join(directory, part, 'model.onnx'));
    for (const prompt of ['a cat', 'a dog'])
      expect(await finish(pipeline, [await rowOf(pipeline, prompt)])).toHaveLength(1);
  });
});

async function changedRowOf(pipeline: ImagePipeline): Promise<ImageRow> {
  const size = { width: 24, height: 16 };
  const text = { prompt: 'a cat', negativePrompt: '', n: 1, scheduler: 'ddim', guidanceScale: 1, seed: 7 };
  const input = { ...text, ...size, numInferenceSteps: 3, previewEvery: 0, image: true, strength: 0.7 };
  const [row] = await pipeline.createRows({
    id: 'a cat',
    input,
    attachments: await attachmentsOf(recorded.given, size),
  });
  return row!;
}

describe('the VAE encoder', () => {
  const model = join(vectors, 'stable-diffusion-2', 'model');
  const file = 'vae_encoder/model.onnx';

  const missing = { code: 'model_unsupported', message: `${file}: is missing` };

  /** Deletes the encoder's file. @returns the first image's bytes. */
  async function loadWithout(pipeline: ImagePipeline, directory: string): Promise<Uint8Array> {
    renameSync(join(directory, file), join(directory, `${file}.away`));
    await expect(changedRowOf(pipeline)).rejects.toMatchObject(missing);
    await finish(pipeline, [await rowOf(pipeline, 'a cat')]);
    renameSync(join(directory, `${file}.away`), join(directory, file));
    const [first] = await finish(pipeline, [await changedRowOf(pipeline)]);
    rmSync(join(directory, file));
    return first!;
  }

  it('is loaded with the first input image, and stays', async () => {
    const directory = copyOf(model);
    const pipeline = await load(directory, false);
    const first = await loadWithout(pipeline, directory);
    const [second] = await finish(pipeline, [await changedRowOf(pipeline)]);
    expect(Buffer.compare(first, second!)).toBe(0);
  });

  it('is unloaded after each use with low memory', async () => {
    const directory = copyOf(model);
    const pipeline = await load(directory, true);
    await loadWithout(pipeline, directory);
    await expect(changedRowOf(pipeline)).rejects.toMatchObject(missing);
  });
});
