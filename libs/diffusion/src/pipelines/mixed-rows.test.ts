/**
 * Tests rows of different schedulers, steps, guidances and negative prompts in one step, with every kind of pipeline.
 */
import { nonEmpty } from '@darkroom/core';
import { resolve } from 'node:path';
import type { RowCheckpoint } from '@darkroom/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPipeline } from './load-pipeline.ts';
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/pipelines');
const names = [
  'stable-diffusion-2',
  'latent-consistency',
  'stable-diffusion-xl',
  'stable-diffusion-3',
  'stable-diffusion-3-without-t5',
  'cogview4',
];

const weighted = `a (red:1.3) car, ${'[a tree] in a garden, '.repeat(14)}`;

describe.each(names)('the pipeline %s', (name) => {
  let pipeline: ImagePipeline;
  beforeAll(async () => {
    pipeline = await loadPipeline({ directory: resolve(vectors, name, 'model'), id: 'tiny', threads: 1 });
  });
  afterAll(() => pipeline.dispose());

  const requestAt = (at: number) => ({
    // One prompt is longer than the others, so models with open prompt lengths need several calls.
    prompt: `a ${['cat', 'dog', 'red car', 'tree in a garden of trees, as far as one can see'][at % 4]!}`,
    negativePrompt: at % 2 ? 'a house' : '',
    width: 32,
    height: 32,
    n: 1,
    numInferenceSteps: 4 + at,
    guidanceScale: [1, 3, 5.5][at % 3]!,
    guidanceRescale: [0, 0.7][at % 2]!,
    seed: 1000 + at,
    scheduler: pipeline.card.schedulers[at % pipeline.card.schedulers.length]!,
    previewEvery: 0,
    // Two chunks with weights, in two rows whose calls are shared.
    ...(at % 4 === 3 && pipeline.card.promptSyntaxes?.includes('webui') && { promptSyntax: 'webui', prompt: weighted }),
  });

  async function rowOf(at: number, checkpoint?: RowCheckpoint): Promise<ImageRow> {
    const checkpoints = checkpoint === undefined ? {} : { checkpoints: new Map([[0, checkpoint]]) };
    const [row] = await pipeline.createRows({ id: 'request', input: requestAt(at), ...checkpoints });
    return row!;
  }

  async function run(row: ImageRow) {
    while (!row.isDone) await pipeline.step([row]);
    return (await pipeline.finish(row)).data;
  }

  it('makes the same bytes for each image of a changing batch as alone', async () => {
    const indexes = Array.from({ length: 8 }, (_, at) => at);
    const alone = [];
    for (const at of indexes) alone.push(await run(await rowOf(at)));
    const rows = await Promise.all(indexes.map((at) => rowOf(at)));
    // One more row joins at each step; the first rows finish before the last ones.
    for (let turn = 0; rows.some((row) => !row.isDone); turn++) {
      const present = nonEmpty(rows.slice(0, turn + 1).filter((row) => !row.isDone));
      expect((await pipeline.step(present)).failures.size).toBe(0);
    }
    for (const [at, row] of rows.entries()) {
      expect(Buffer.compare((await pipeline.finish(row)).data, alone[at]!)).toBe(0);
    }
    expect(new Set(alone.map((image) => Buffer.from(image).toString('base64'))).size).toBe(indexes.length);
  });

  it('reports the number of cut tokens, also after resuming from a checkpoint', async () => {
    const long = { prompt: 'a red car '.repeat(700), negativePrompt: 'a house '.repeat(700), guidanceScale: 3 };
    const create = async (checkpoint?: RowCheckpoint) => {
      const checkpoints = checkpoint === undefined ? {} : { checkpoints: new Map([[0, checkpoint]]) };
      return (await pipeline.createRows({ id: 'long', input: { ...requestAt(0), ...long }, ...checkpoints }))[0]!;
    };
    const first = await create();
    await pipeline.step([first]);
    const resumed = await create(structuredClone(pipeline.checkpoint(first)));
    while (!resumed.isDone) await pipeline.step([resumed]);
    const { facts } = await pipeline.finish(resumed);
    expect(facts).toEqual({
      seed: 1000,
      width: 32,
      height: 32,
      promptTokensCut: first.prompt.cutTokens,
      ...(first.negativePrompt && { negativePromptTokensCut: first.negativePrompt.cutTokens }),
    });
    // More than a thousand tokens are too many for every model.
    expect(first.prompt.cutTokens).toBeGreaterThan(100);
  });

  it('counts cut tokens by the encoder that reads the most', async () => {
    const prompt = 'a red car '.repeat(30);
    const [row] = await pipeline.createRows({ id: 'long', input: { ...requestAt(0), prompt, negativePrompt: '' } });
    const readsFurther = ['stable-diffusion-3', 'cogview4'].includes(name);
    expect(row!.negativePrompt?.cutTokens ?? 0).toBe(0);
    expect(row!.prompt.cutTokens === 0).toBe(readsFurther);
  });

  it('ends in the same bytes from a checkpoint', async () => {
    const whole = await run(await rowOf(4));
    const first = await rowOf(4);
    for (let step = 0; step < 3; step++) await pipeline.step([first]);
    const resumed = await rowOf(4, structuredClone(pipeline.checkpoint(first)));
    expect(resumed.step).toBe(3);
    expect(Buffer.compare(await run(resumed), whole)).toBe(0);
  });
});

describe('the rows of the model', () => {
  it.each([
    ['stable-diffusion-2', 4],
    ['latent-consistency', 2],
    ['stable-diffusion-xl', 4],
    ['stable-diffusion-3', 4],
    ['cogview4', 4],
  ])('take the minimum number of model rows with %s', async (name, modelRows) => {
    const directory = resolve(vectors, name, 'model');
    const pipeline = await loadPipeline({ directory, id: 'tiny', threads: 1 });
    const { defaultScheduler: scheduler } = pipeline.card;
    const input = { prompt: 'a cat', negativePrompt: '', width: 32, height: 32, n: 2, seed: 1, scheduler };
    const request = { ...input, numInferenceSteps: 2, guidanceScale: 3, previewEvery: 0 };
    const rows = await pipeline.createRows({ id: 'request', input: request });
    expect(await pipeline.step(nonEmpty(rows))).toMatchObject({ modelRows, failures: new Map() });
    await pipeline.dispose();
  });
});
