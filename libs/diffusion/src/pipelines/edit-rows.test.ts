/** Rows without and with an input image, and with a mask, in one step; and their attachments. */
import { nonEmpty } from '@darkroom/core';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { RowCheckpoint } from '@darkroom/core';
import { encodeImage } from '@darkroom/imaging';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import recorded from '../../../../tools/golden/vectors/edits/stable-diffusion-2.json' with { type: 'json' };
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';
import { attachmentsOf, type EditModel, openEditModel } from '../testing/recorded-edits.ts';
import { loadPipeline } from './load-pipeline.ts';

const size = { width: 24, height: 16 };

async function run(pipeline: ImagePipeline, row: ImageRow): Promise<Uint8Array> {
  while (!row.isDone) await pipeline.step([row]);
  return (await pipeline.finish(row)).data;
}

describe.each([
  'stable-diffusion-2',
  'stable-diffusion-2-inpainting',
  'latent-consistency',
  'stable-diffusion-xl',
  'stable-diffusion-xl-inpainting',
  'stable-diffusion-3',
])('rows of the pipeline %s', (name) => {
  let model: EditModel;
  let pipeline: ImagePipeline;
  let attachments: Map<string, Uint8Array>;
  beforeAll(async () => {
    model = await openEditModel(name);
    pipeline = await loadPipeline({ directory: model.directory, id: 'tiny', threads: 1 });
    attachments = await attachmentsOf(recorded.given, { ...size, mask: true });
  });
  afterAll(async () => {
    await pipeline.dispose();
    await model.remove();
  });

  /**
   * Alternates between no image, an image and, if the model takes one, a mask; with several strengths and all
   * schedulers.
   */
  function requestAt(at: number) {
    const { schedulers, takes = [] } = pipeline.card;
    const from = { strength: [0.6, 1, 0.3][Math.floor(at / 3) % 3]!, image: true };
    const start = [{}, from, takes.includes('mask') ? { ...from, mask: true } : from][at % 3]!;
    const text = { prompt: `a ${['cat', 'dog', 'red car'][at % 3]!}`, negativePrompt: at % 2 ? 'a house' : '' };
    const guidance = { guidanceScale: [1, 3, 5.5, 3][at % 4]!, guidanceRescale: 0 };
    const steps = { numInferenceSteps: 4 + (at % 4), scheduler: schedulers[at % schedulers.length]!, previewEvery: 0 };
    return { ...text, ...size, ...guidance, ...steps, ...start, n: 1, seed: 1000 + at };
  }

  async function rowOf(at: number, checkpoint?: RowCheckpoint): Promise<ImageRow> {
    const checkpoints = checkpoint === undefined ? {} : { checkpoints: new Map([[0, checkpoint]]) };
    const input = requestAt(at);
    const [row] = await pipeline.createRows({ id: 'request', input, attachments, ...checkpoints });
    return row!;
  }

  const indexes = Array.from({ length: 12 }, (_, at) => at);

  it('make the same bytes in a changing batch as alone', async () => {
    const alone: Uint8Array[] = [];
    for (const at of indexes) alone.push(await run(pipeline, await rowOf(at)));
    const rows: ImageRow[] = [];
    for (const at of indexes) rows.push(await rowOf(at));
    // One more row joins at each step; the first rows finish before the last ones.
    for (let turn = 0; rows.some((row) => !row.isDone); turn++) {
      const present = nonEmpty(rows.slice(0, turn + 1).filter((row) => !row.isDone));
      expect((await pipeline.step(present)).failures.size).toBe(0);
    }
    expect(new Set(rows.map(({ shapeKey }) => shapeKey)).size).toBe(1);
    for (const [at, row] of rows.entries()) {
      expect(Buffer.compare((await pipeline.finish(row)).data, alone[at]!)).toBe(0);
    }
    expect(new Set(alone.map((image) => Buffer.from(image).toString('base64'))).size).toBe(indexes.length);
  });

  it('end in the same bytes from a checkpoint', async () => {
    for (const at of indexes) {
      const whole = await run(pipeline, await rowOf(at));
      const first = await rowOf(at);
      const steps = Math.min(2, first.totalSteps - 1);
      for (let step = 0; step < steps; step++) await pipeline.step([first]);
      const resumed = await rowOf(at, structuredClone(pipeline.checkpoint(first)));
      expect(resumed.step).toBe(steps);
      expect(Buffer.compare(await run(pipeline, resumed), whole)).toBe(0);
    }
  });

  it('start over from a checkpoint of another strength', async () => {
    const first = await rowOf(1);
    await pipeline.step([first]);
    const { data } = pipeline.checkpoint(first);
    const input = { ...requestAt(1), strength: 0.9 };
    const checkpoints = new Map([[0, { done: 1, data }]]);
    const [row] = await pipeline.createRows({ id: 'request', input, attachments, checkpoints });
    expect(row!.step).toBe(0);
  });

  it('take at least one step, even at the lowest strength', async () => {
    for (const strength of [0, 0.01]) {
      // pndm takes its first step twice.
      const input = { ...requestAt(1), strength, scheduler: pipeline.card.defaultScheduler };
      const [row] = await pipeline.createRows({ id: 'request', input, attachments });
      expect(row!.totalSteps).toBe(1);
      await run(pipeline, row!);
    }
  });
});

describe('a model for inpainting', () => {
  let model: EditModel;
  let pipeline: ImagePipeline;
  beforeAll(async () => {
    model = await openEditModel('stable-diffusion-2-inpainting');
    pipeline = await loadPipeline({ directory: model.directory, id: 'tiny', threads: 1 });
  });
  afterAll(async () => {
    await pipeline.dispose();
    await model.remove();
  });

  it('draws the same without an image as with a fully masked one', async () => {
    const text = { prompt: 'a cat', negativePrompt: '', guidanceScale: 3, scheduler: 'ddim', seed: 5 };
    const input = { ...text, ...size, n: 1, numInferenceSteps: 3, previewEvery: 0 };
    const given = await attachmentsOf(recorded.given, size);
    const rowOf = async (changes: object) =>
      (await pipeline.createRows({ id: 'request', input: { ...input, ...changes }, attachments: given }))[0]!;
    const drawn = await run(pipeline, await rowOf({}));
    const painted = await run(pipeline, await rowOf({ image: true, strength: 1 }));
    expect(Buffer.compare(drawn, painted)).toBe(0);
  });
});

const pngOf = async (width: number, height: number): Promise<Uint8Array> => {
  const image = { data: new Uint8Array(width * height * 3), facts: { width, height } };
  return (await encodeImage(image, { outputFormat: 'png', outputCompression: 100 })).data;
};

describe('attachments of a request', () => {
  let pipeline: ImagePipeline;
  let given: Map<string, Uint8Array>;
  beforeAll(async () => {
    const { directory } = await openEditModel('stable-diffusion-2');
    pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    given = await attachmentsOf(recorded.given, { ...size, mask: true });
  });
  afterAll(() => pipeline.dispose());

  const input = {
    ...size,
    prompt: 'a cat',
    negativePrompt: '',
    n: 1,
    numInferenceSteps: 4,
    guidanceScale: 1,
    seed: 5,
    scheduler: 'ddim',
    previewEvery: 0,
    image: true,
    strength: 0.5,
  };

  it('are ignored by rows that do not name them', async () => {
    const { image: _image, strength: _strength, ...plain } = input;
    const draw = async (attachments?: Map<string, Uint8Array>) => {
      const more = attachments === undefined ? {} : { attachments };
      return run(pipeline, (await pipeline.createRows({ id: 'request', input: plain, ...more }))[0]!);
    };
    expect(Buffer.compare(await draw(given), await draw())).toBe(0);
  });

  it('show the preserved area in previews', async () => {
    const request = { ...input, mask: true, strength: 1 };
    const [row] = await pipeline.createRows({ id: 'request', input: request, attachments: given });
    await pipeline.step([row!]);
    const kept = row!.start.preserved!;
    const stays = [...row!.latents.keys()].filter((at) => kept.mask[at % kept.mask.length] === 0);
    expect(stays.length).toBeGreaterThan(0);
    for (const at of stays) expect(row!.predictedOriginal[at]).toBe(kept.original[at]);
  });

  it.each([
    ['no image', {}, async () => new Map(), "image: is missing from the request's attachments"],
    [
      'no mask',
      { mask: true },
      async () => new Map([...given].slice(0, 1)),
      "mask: is missing from the request's attachments",
    ],
    ['a text', {}, async () => new Map([['image', Buffer.from('no')]]), 'image: is not a readable image'],
    [
      'another size',
      {},
      async () => new Map([['image', await pngOf(24, 24)]]),
      "image: is 24 × 24; expected 24 × 16, the request's size",
    ],
    ['a mask alone', { image: undefined, mask: true }, async () => given, 'mask: requires image, which is missing'],
    ['no strength', { strength: undefined }, async () => given, 'strength: is missing'],
    ['too much strength', { strength: 1.5 }, async () => given, 'strength: '],
  ])('are refused: %s', async (_name, changes, attachments, message) => {
    const request = { id: 'request', input: { ...input, ...changes }, attachments: await attachments() };
    await expect(pipeline.createRows(request)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(message) as string,
    });
  });

  it('are refused by a model that takes none', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'darkroom-no-encoder-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    await cp((await openEditModel('stable-diffusion-2')).directory, directory, { recursive: true });
    await rm(join(directory, 'vae_encoder'), { recursive: true });
    const without = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    onTestFinished(() => without.dispose());
    expect(without.card).not.toHaveProperty('takes');
    await expect(without.createRows({ id: 'request', input, attachments: given })).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'image: this model takes no images',
    });
  });
});

async function directoryWith(change: (directory: string) => Promise<void>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-encoders-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await cp((await openEditModel('stable-diffusion-2')).directory, directory, { recursive: true });
  await change(directory);
  return directory;
}

describe('VAE encoders of different exporters', () => {
  const encoders = resolve(import.meta.dirname, '../../../../tools/golden/vectors/edits/vae-encoders');
  const { request, latents } = recorded.runs.find((one) => one.request.scheduler === 'euler')!;

  it.each(['sample', 'mean'])('that return a %s make the same as those that return moments', async (kind) => {
    const directory = await directoryWith((to) =>
      cp(join(encoders, kind), join(to, 'vae_encoder'), { recursive: true }),
    );
    const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    onTestFinished(() => pipeline.dispose());
    const input = { negativePrompt: '', n: 1, previewEvery: 0, ...request };
    const attachments = await attachmentsOf(recorded.given, request);
    const [row] = await pipeline.createRows({ id: 'request', input, attachments });
    while (!row!.isDone) await pipeline.step([row!]);
    const theirs = new Float32Array(Uint8Array.from(Buffer.from(latents, 'base64')).buffer).slice(-row!.latents.length);
    const difference = Math.hypot(...row!.latents.map((value, at) => value - theirs[at]!));
    expect(difference / Math.hypot(...theirs)).toBeLessThan(1e-4);
  });

  it.each([
    ['decoder', 'vae_decoder', /^vae_encoder\/model\.onnx: does not accept latent_sample \[1, 3, \d+, \d+\], which/u],
    ['UNet', 'unet', /^vae_encoder\/model\.onnx: has the inputs sample, timestep, \w+; supported is one, sample$/u],
    ['text encoder', 'text_encoder', /^vae_encoder\/model\.onnx: does not accept input_ids/u],
  ])('are refused if the file contains a %s', async (_name, part, message) => {
    const directory = await directoryWith((to) =>
      cp(join(to, part, 'model.onnx'), join(to, 'vae_encoder/model.onnx'), { force: true }),
    );
    await expect(loadPipeline({ directory, id: 'tiny', threads: 1 })).rejects.toMatchObject({
      code: 'model_unsupported',
      message: expect.stringMatching(message) as string,
    });
  });

  it('are refused if they draw noise in an unknown way', async () => {
    const file = await readFile(join(encoders, 'sample/model.onnx'));
    // The operator of the last node, which adds the noise to the mean.
    const at = file.lastIndexOf(Buffer.from('\x22\x03Add'));
    file.write('\x22\x03Sub', at);
    const directory = await directoryWith((to) => writeFile(join(to, 'vae_encoder/model.onnx'), file));
    await expect(loadPipeline({ directory, id: 'tiny', threads: 1 })).rejects.toMatchObject({
      code: 'model_unsupported',
      message: expect.stringMatching(
        /^vae_encoder\/model\.onnx: draws noise in the graph, which no seed reproduces; /u,
      ) as string,
    });
  });

  it('are refused if the file is damaged', async () => {
    const directory = await directoryWith((to) => writeFile(join(to, 'vae_encoder/model.onnx'), 'no'));
    await expect(loadPipeline({ directory, id: 'tiny', threads: 1 })).rejects.toMatchObject({
      code: 'model_unsupported',
      message: expect.stringMatching(/^vae_encoder\/model\.onnx: /u) as string,
    });
  });
});
