/**
 * Compares adapters for text encoders with models whose weights tools/golden/record-lora-text-encoders.py merged with
 * them.
 */
import { nonEmpty } from '@darkroom/core';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';
import { loadPipeline } from './load-pipeline.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors');

interface Recorded {
  scale: number;
  /** Per text encoder: offset in its file, and the bytes there. */
  patches: Record<string, [offset: number, bytes: string][]>;
}

/**
 * Copies a tiny model with its graphs for adapters and two adapters: one for the UNet, one for UNet and text encoders.
 */
function modelOf(name: string, { patches }: Pick<Recorded, 'patches'>, { isMerged = false } = {}): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-loras-'));
  const recorded = join(vectors, 'loras', name);
  cpSync(join(vectors, 'pipelines', name, 'model'), directory, { recursive: true });
  cpSync(join(recorded, 'model.loras.onnx'), join(directory, 'unet/model.loras.onnx'));
  for (const id of ['kohya', 'complete'])
    cpSync(join(recorded, `${id}.safetensors`), join(directory, `loras/${id}.safetensors`));
  for (const [part, changes] of Object.entries(patches)) {
    if (isMerged) {
      const file = join(directory, part, 'model.onnx');
      const content = readFileSync(file);
      for (const [offset, bytes] of changes) content.set(Buffer.from(bytes, 'base64'), offset);
      writeFileSync(file, content);
    } else cpSync(join(recorded, `${part}.model.loras.onnx`), join(directory, part, 'model.loras.onnx'));
  }
  return directory;
}

const shared = { negativePrompt: 'a dog', width: 32, height: 24, n: 1, previewEvery: 0, guidanceRescale: 0 };
const usual = { prompt: 'a cat', seed: 7, guidanceScale: 3, numInferenceSteps: 3 };

async function rowOf(pipeline: ImagePipeline, input: object): Promise<ImageRow> {
  const scheduler = pipeline.card.defaultScheduler;
  return (await pipeline.createRows({ id: 'request', input: { ...shared, ...usual, scheduler, ...input } }))[0]!;
}

async function draw(pipeline: ImagePipeline, input: object): Promise<Float32Array> {
  const row = await rowOf(pipeline, input);
  while (!row.isDone) await pipeline.step([row]);
  return row.latents.slice();
}

describe.each(['stable-diffusion-2', 'latent-consistency', 'stable-diffusion-xl'])(
  'adapters of %s with text encoders',
  (name) => {
    const recorded = JSON.parse(readFileSync(join(vectors, 'loras', name, 'text-encoders.json'), 'utf8')) as Recorded;
    const { scale } = recorded;
    const directories: string[] = [];
    let pipeline: ImagePipeline;
    let merged: ImagePipeline;
    beforeAll(async () => {
      directories.push(modelOf(name, recorded), modelOf(name, recorded, { isMerged: true }));
      pipeline = await loadPipeline({ directory: directories[0]!, id: 'tiny', threads: 2 });
      merged = await loadPipeline({ directory: directories[1]!, id: 'merged', threads: 2 });
    });
    afterAll(async () => {
      await Promise.all([pipeline.dispose(), merged.dispose()]);
      for (const directory of directories) rmSync(directory, { recursive: true });
    });

    it('list the text encoders they are not applied to, if those take no adapters', () => {
      expect(pipeline.card.loras).toEqual([
        { id: 'complete', rank: 18 },
        { id: 'kohya', rank: 18 },
      ]);
      const leftOut = Object.keys(recorded.patches);
      expect(merged.card.loras).toEqual([
        { id: 'complete', rank: 18, leftOut },
        { id: 'kohya', rank: 18 },
      ]);
    });

    it('draw the same as a model with the adapters merged into its weights', async () => {
      const ours = await draw(pipeline, { loras: [{ id: 'complete', scale }] });
      const theirs = await draw(merged, { loras: [{ id: 'kohya', scale }] });
      expect(distance(ours, theirs)).toBeLessThan(1e-4);
      // The text encoders' changes have a noticeable effect.
      expect(distance(await draw(pipeline, { loras: [{ id: 'kohya', scale }] }), theirs)).toBeGreaterThan(0.01);
    });

    it("apply the UNet's changes if the text encoders take no adapters", async () => {
      const leftOut = await draw(merged, { loras: [{ id: 'complete', scale }] });
      expect(leftOut).toEqual(await draw(merged, { loras: [{ id: 'kohya', scale }] }));
    });

    it('do not change prompts of other rows: each row has the same bytes as alone', async () => {
      const sets = [undefined, ['complete', 1], ['kohya', 1], ['complete', 0.3]] as const;
      const requests = sets.map((chosen) => ({ loras: chosen && [{ id: chosen[0], scale: chosen[1] }] }));
      const own = await loadPipeline({ directory: directories[0]!, id: 'own', threads: 2 });
      const alone: Float32Array[] = [];
      // In the reverse order, so that a change that one row leaves behind meets other rows here.
      for (const request of requests.toReversed()) alone.unshift(await draw(own, request));
      await own.dispose();
      const rows = await Promise.all(requests.map((request) => rowOf(pipeline, request)));
      while (rows.some((row) => !row.isDone)) await pipeline.step(nonEmpty(rows.filter((row) => !row.isDone)));
      expect(rows.map((row) => row.latents)).toEqual(alone);
      expect(distance(alone[1]!, alone[3]!)).toBeGreaterThan(0.01);
    });
  },
);

it('loads text encoders with adapters only while they encode, if memory is low', async () => {
  const name = 'stable-diffusion-2';
  const recorded = JSON.parse(readFileSync(join(vectors, 'loras', name, 'text-encoders.json'), 'utf8')) as Recorded;
  const directory = modelOf(name, recorded);
  const pipelines = await Promise.all(
    [false, true].map((hasLowMemory) => loadPipeline({ directory, id: 'tiny', threads: 1, hasLowMemory })),
  );
  const drawn: Float32Array[] = [];
  for (const pipeline of pipelines) {
    const first = await draw(pipeline, { loras: [{ id: 'complete', scale: 1 }] });
    await pipeline.settle();
    drawn.push(first, await draw(pipeline, { loras: [{ id: 'complete', scale: 1 }], prompt: 'a cat' }));
    await pipeline.dispose();
  }
  rmSync(directory, { recursive: true });
  expect(drawn.slice(1)).toEqual(drawn.slice(1).map(() => drawn[0]));
});

/** Returns the distance relative to the second's length. */
function distance(ours: Float32Array, theirs: Float32Array): number {
  return Math.hypot(...ours.map((value, at) => value - theirs[at]!)) / Math.hypot(...theirs);
}
