/**
 * Compares a tiny model from tools/export in fp16, INT8 and both with its fp32 images (recorded by
 * tools/export/record.py).
 */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseDtypeChoice, nonEmpty } from '@darkroom/core';
import { loadOnnxSession } from '@darkroom/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import recorded from '../../../../tools/golden/vectors/export/recorded.json' with { type: 'json' };
import { loadPipeline } from './load-pipeline.ts';
import type { ImagePipeline } from '../image/image-row.ts';

const root = resolve(import.meta.dirname, '../../../..');
let directory: string;
beforeAll(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'darkroom-dtypes-')), 'tiny');
  await cp(join(root, 'tools/golden/vectors/export/model'), directory, { recursive: true });
  await cp(join(root, 'models/emoji-sd/tokenizer'), join(directory, 'tokenizer'), { recursive: true });
});
afterAll(() => rm(join(directory, '..'), { recursive: true }));

it('has fp16 inputs and outputs, except for the timesteps', async () => {
  const session = await loadOnnxSession({ file: join(directory, 'unet/model_fp16.onnx') });
  expect([...session.inputs, ...session.outputs].map(({ name, type }) => [name, type])).toEqual([
    ['sample', 'float16'],
    ['timestep', 'float32'],
    ['encoder_hidden_states', 'float16'],
    ['out_sample', 'float16'],
  ]);
  await session.dispose();
});

/** Two threads: with one, ONNX Runtime's results never depend on how it splits the rows among threads. */
describe.each([
  ['fp16', 50],
  ['int8', 35],
  ['int8,vae_decoder=fp16', 35],
  ['fp16,unet=int8', 35],
])('the dtypes %s', (dtypes, leastDecibels) => {
  let pipeline: ImagePipeline;
  beforeAll(async () => {
    pipeline = await loadPipeline({ directory, dtypes: parseDtypeChoice(dtypes)!, threads: 2 });
  });
  afterAll(() => pipeline.dispose());

  async function rowOf(request: object) {
    const input = { negativePrompt: '', n: 1, previewEvery: 0, ...request };
    const [row] = await pipeline.createRows({ id: 'request', input });
    return row!;
  }

  async function draw(request: object) {
    const row = await rowOf(request);
    while (!row.isDone) await pipeline.step([row]);
    return (await pipeline.finish(row)).data;
  }

  it.each(recorded.map((run) => [run.request.prompt, run] as const))('draw %s as fp32 does', async (_, run) => {
    const expected = Buffer.from(run.image, 'base64');
    const image = await draw(run.request);
    expect(image).toHaveLength(expected.length);
    const squares = image.reduce((sum, value, at) => sum + (value - expected[at]!) ** 2, 0);
    expect(10 * Math.log10((255 ** 2 * expected.length) / squares)).toBeGreaterThan(leastDecibels);
  });

  it('make the same bytes for an image in a batch of 1 to 8 as alone', async () => {
    const { request } = recorded[0]!;
    const requests = Array.from({ length: 8 }, (_, at) => ({
      ...request,
      seed: at,
      numInferenceSteps: 10 - at,
      guidanceScale: at % 2 === 0 ? 3 : 1,
    }));
    const alone = [];
    for (const request of requests) alone.push(await draw(request));
    const rows = await Promise.all(requests.map(rowOf));
    for (let turn = 0; rows.some((row) => !row.isDone); turn++) {
      await pipeline.step(nonEmpty(rows.slice(0, turn + 1).filter((row) => !row.isDone)));
    }
    for (const [at, row] of rows.entries()) {
      expect(Buffer.compare((await pipeline.finish(row)).data, alone[at]!)).toBe(0);
    }
  });
});
