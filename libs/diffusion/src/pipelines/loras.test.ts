/**
 * Tests adapters: tiny models compared to diffusers (recorded by tools/golden/record-loras.py), and batches of rows.
 */
import { nonEmpty } from '@darkroom/core';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import latentConsistency from '../../../../tools/golden/vectors/loras/latent-consistency/recorded.json' with { type: 'json' };
import stableDiffusion2 from '../../../../tools/golden/vectors/loras/stable-diffusion-2/recorded.json' with { type: 'json' };
import stableDiffusionXl from '../../../../tools/golden/vectors/loras/stable-diffusion-xl/recorded.json' with { type: 'json' };
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';
import { loadPipeline } from './load-pipeline.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors');
const recordings = {
  'stable-diffusion-2': stableDiffusion2.runs,
  'latent-consistency': latentConsistency.runs,
  'stable-diffusion-xl': stableDiffusionXl.runs,
};

/** Copies a recording's model with its graph for adapters, and the adapters. */
function modelOf(name: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-loras-'));
  cpSync(join(vectors, 'pipelines', name, 'model'), directory, { recursive: true });
  cpSync(join(vectors, 'loras', name, 'model.loras.onnx'), join(directory, 'unet/model.loras.onnx'));
  for (const id of ['peft', 'kohya'])
    cpSync(join(vectors, 'loras', name, `${id}.safetensors`), join(directory, `loras/${id}.safetensors`));
  return directory;
}

describe.each(Object.entries(recordings))('adapters of %s', (name, runs) => {
  let pipeline: ImagePipeline;
  let directory: string;
  beforeAll(async () => {
    directory = modelOf(name);
    pipeline = await loadPipeline({ directory, id: 'tiny', threads: 2 });
  });
  afterAll(async () => {
    await pipeline.dispose();
    rmSync(directory, { recursive: true });
  });

  const shared = { negativePrompt: '', n: 1, previewEvery: 0, guidanceRescale: 0 };
  const rowOf = async (input: object): Promise<ImageRow> =>
    (await pipeline.createRows({ id: 'request', input: { ...shared, ...input } }))[0]!;
  const run = async (row: ImageRow): Promise<Buffer> => {
    while (!row.isDone) await pipeline.step([row]);
    return Buffer.from((await pipeline.finish(row)).data);
  };

  it('are listed in the card with their ranks', () => {
    expect(pipeline.card.loras).toEqual([
      { id: 'kohya', rank: 18 },
      { id: 'peft', rank: 4 },
    ]);
  });

  it.each(runs.map((each) => [JSON.stringify(each.request), each] as const))(
    'have the latents of every step of diffusers for %s',
    async (_, { request, latents }) => {
      const row = await rowOf(request);
      const plain = await rowOf({ ...request, loras: undefined });
      const { length } = row.latents;
      const expected = new Float32Array(Uint8Array.from(Buffer.from(latents, 'base64')).buffer);
      expect(expected).toHaveLength(row.totalSteps * length);
      while (!row.isDone) {
        const theirs = expected.subarray(row.step * length, (row.step + 1) * length);
        await pipeline.step([row, plain]);
        expect(distance(row.latents, theirs)).toBeLessThan(1e-4);
        // The adapters' effect is much larger than the tolerance.
        expect(distance(plain.latents, theirs)).toBeGreaterThan(0.01);
      }
    },
  );

  it('do not change other rows: each row of a changing batch has the same bytes as alone, whatever the adapters and ranks', async () => {
    const sets = [
      undefined,
      [['peft', 1]],
      [['kohya', 0.6]],
      [
        ['peft', 0.5],
        ['kohya', 1],
      ],
      [['peft', 1]],
      undefined,
    ] as const;
    const requests = sets.map((chosen, at) => ({
      ...runs[0]!.request,
      prompt: `a ${['cat', 'dog', 'red car'][at % 3]!}`,
      guidanceScale: [1, 3, 5.5][at % 3]!,
      numInferenceSteps: 3 + (at % 3),
      seed: 100 + at,
      loras: chosen?.map(([id, scale]) => ({ id, scale })),
    }));
    const alone = [];
    for (const request of requests) alone.push(await run(await rowOf(request)));
    const rows = [];
    for (const request of requests) rows.push(await rowOf(request));
    for (let turn = 0; rows.some((row) => !row.isDone); turn++) {
      const present = nonEmpty(rows.slice(0, turn + 1).filter((row) => !row.isDone));
      expect((await pipeline.step(present)).failures.size).toBe(0);
    }
    for (const [at, row] of rows.entries()) {
      expect(Buffer.compare(Buffer.from((await pipeline.finish(row)).data), alone[at]!)).toBe(0);
    }
    expect(new Set(alone.map((image) => image.toString('base64'))).size).toBe(requests.length);
  });

  it('are part of a checkpoint: the same adapters resume it to the same bytes, others start over', async () => {
    const { request } = runs[0]!;
    const whole = await run(await rowOf(request));
    const row = await rowOf(request);
    await pipeline.step([row]);
    const checkpoint = structuredClone(pipeline.checkpoint(row));
    const resume = async (input: object): Promise<ImageRow> => {
      const request = { id: 'request', input: { ...shared, ...input }, checkpoints: new Map([[0, checkpoint]]) };
      return (await pipeline.createRows(request))[0]!;
    };
    const resumed = await resume(request);
    expect(resumed.step).toBe(1);
    expect(Buffer.compare(await run(resumed), whole)).toBe(0);
    expect((await resume({ ...request, loras: [{ id: 'peft', scale: 0.3 }] })).step).toBe(0);
    expect((await resume({ ...request, loras: undefined })).step).toBe(0);
  });

  it('that are unknown are refused, and so are ranks above the limit in total', async () => {
    const { request } = runs[0]!;
    await expect(rowOf({ ...request, loras: [{ id: 'nobody', scale: 1 }] })).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'loras: unknown adapter nobody; expected kohya, peft',
    });
    const many = Array.from({ length: 8 }, () => ({ id: 'kohya', scale: 1 }));
    await expect(rowOf({ ...request, loras: many })).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'loras: their ranks add up to 144, expected at most 128',
    });
  });
});

/** Returns the distance relative to the second's length. */
function distance(ours: Float32Array, theirs: Float32Array): number {
  return Math.hypot(...ours.map((value, at) => value - theirs[at]!)) / Math.hypot(...theirs);
}
