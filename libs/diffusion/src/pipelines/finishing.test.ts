/** Tests the safety checker and upscaling of decoded images. */
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { upscaleSteps } from '@darkroom/kinds';
import { loadOnnxSession } from '@darkroom/runtime';
import { writeSafetyChecker, writeUpscaler } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeModel, readModelDirectory } from '../model-files.ts';
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';
import { loadUpscaler } from '../upscale/upscaler.ts';
import { loadPipeline, type LoadImageModelOptions } from './load-pipeline.ts';

const source = resolve(import.meta.dirname, '../../../../models/emoji-sd');
const red = 'a cat on a red background';
const blue = 'a cat on a blue background';

let directory: string;
beforeAll(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'darkroom-finishing-')), 'checked');
  await cp(source, directory, { recursive: true });
  await rm(join(directory, 'upscaler_x2'), { recursive: true, force: true });
  writeSafetyChecker(directory);
  writeUpscaler(directory, 2);
  writeUpscaler(directory, 4);
});
afterAll(() => rm(join(directory, '..'), { recursive: true }));

async function load<Result>(
  options: Partial<LoadImageModelOptions>,
  work: (pipeline: ImagePipeline) => Promise<Result>,
): Promise<Result> {
  const pipeline = await loadPipeline({ directory, threads: 1, ...options });
  try {
    return await work(pipeline);
  } finally {
    await pipeline.dispose();
  }
}

async function rowOf(pipeline: ImagePipeline, changes: Record<string, unknown> = {}): Promise<ImageRow> {
  const input = {
    prompt: blue,
    negativePrompt: '',
    width: 64,
    height: 64,
    n: 1,
    numInferenceSteps: 3,
    guidanceScale: 3,
    guidanceRescale: 0,
    seed: 7,
    scheduler: 'dpmpp_2m',
    previewEvery: 1,
    ...changes,
  };
  return (await pipeline.createRows({ id: 'request', input }))[0]!;
}

async function run(pipeline: ImagePipeline, row: ImageRow) {
  const events = [];
  while (!row.isDone) {
    const report = await pipeline.step([row]);
    for (const failure of report.failures.values()) throw failure;
    events.push(...report.events.get(row)!);
  }
  return { events, ...(await pipeline.finish(row)) };
}

/** Returns for each step whether it had a preview. */
async function previews(pipeline: ImagePipeline): Promise<boolean[]> {
  const { events } = await run(pipeline, await rowOf(pipeline));
  return events.map((event) => event.type === 'progress' && event.preview !== undefined);
}

const isBlack = (data: Uint8Array): boolean => data.every((value) => value === 0);

describe('a model with a safety checker', () => {
  it('blacks out images that it flags, and reports its verdict on each', () =>
    load({}, async (pipeline) => {
      expect(pipeline.card.safetyChecker).toBe('black');
      expect(pipeline.components.map(({ part }) => part)).toContain('safety_checker');
      const bad = await run(pipeline, await rowOf(pipeline, { prompt: red }));
      expect(bad.facts).toEqual({ seed: 7, width: 64, height: 64, nsfw: true });
      expect(isBlack(bad.data)).toBe(true);
      const good = await run(pipeline, await rowOf(pipeline));
      expect(good.facts).toEqual({ seed: 7, width: 64, height: 64, nsfw: false });
      const unchecked = await load({ safetyChecker: 'off' }, async (other) => run(other, await rowOf(other)));
      expect(unchecked.facts).toEqual({ seed: 7, width: 64, height: 64 });
      expect(Buffer.compare(good.data, unchecked.data)).toBe(0);
    }));

  it('fails flagged images if set to refuse, and no others', () =>
    load({ safetyChecker: 'refuse' }, async (pipeline) => {
      expect(pipeline.card.safetyChecker).toBe('refuse');
      const refusal = { code: 'content_policy_violation', message: expect.stringContaining('image 0') as string };
      await expect(run(pipeline, await rowOf(pipeline, { prompt: red }))).rejects.toMatchObject(refusal);
      const larger = { prompt: red, upscale: 2 };
      await expect(run(pipeline, await rowOf(pipeline, larger))).rejects.toMatchObject(refusal);
      expect((await run(pipeline, await rowOf(pipeline))).facts).toMatchObject({ nsfw: false });
    }));

  it('shows no previews, so that no unchecked image is shown, and shows them without a checker', async () => {
    expect(await load({}, previews)).toEqual([false, false, false]);
    expect(await load({ safetyChecker: 'off' }, previews)).toEqual([true, true, false]);
  });

  it('draws the same without a checker, or with the checker off', async () => {
    const { card, graphs } = await readModelDirectory(directory, { safetyChecker: 'off' });
    expect(card).not.toHaveProperty('safetyChecker');
    expect(graphs).not.toHaveProperty('safetyChecker');
    const parts = async (safetyChecker: 'auto' | 'off') =>
      describeModel(await readModelDirectory(directory, { safetyChecker })).graphs.map(({ part }) => part);
    expect(await parts('auto')).toContain('safety_checker');
    expect(await parts('off')).not.toContain('safety_checker');
  });

  it('cannot be loaded without the preprocessor settings, or with another graph', async () => {
    const other = join(directory, '../other');
    await cp(directory, other, { recursive: true });
    await rm(join(other, 'feature_extractor'), { recursive: true });
    const failure = () => load({ directory: other }, async () => {});
    const message = 'feature_extractor/preprocessor_config.json: is missing';
    await expect(failure()).rejects.toMatchObject({ code: 'model_unsupported', message });
    writeSafetyChecker(other);
    await cp(join(other, 'upscaler_x2/model.onnx'), join(other, 'safety_checker/model.onnx'));
    await expect(failure()).rejects.toMatchObject({
      code: 'model_unsupported',
      message:
        'safety_checker/model.onnx: has inputs input and outputs output; expected clip_input and images, and has_nsfw_concepts, the inputs and outputs of exported StableDiffusionSafetyCheckers',
    });
  });
});

describe('a model with upscalers', () => {
  it.each([2, 4] as const)('upscales by %d in extra steps that progress includes', (upscale) =>
    load({ safetyChecker: 'off' }, async (pipeline) => {
      expect(pipeline.card.upscales).toEqual([2, 4]);
      const plain = await run(pipeline, await rowOf(pipeline));
      const row = await rowOf(pipeline, { upscale });
      expect([row.stepsLeft, row.totalSteps]).toEqual([4, 4]);
      const larger = await run(pipeline, row);
      expect(larger.events.map((event) => 'done' in event && [event.done, 'total' in event && event.total])).toEqual([
        [1, 4],
        [2, 4],
        [3, 4],
        [4, 4],
      ]);
      const side = 64 * upscale;
      expect(larger.facts).toEqual({ seed: 7, width: side, height: side });
      expect(Buffer.compare(larger.data, repeated(plain.data, 64, upscale))).toBe(0);
    }),
  );

  it('upscales a blacked-out image, and reports the verdict', () =>
    load({}, async (pipeline) => {
      const { data, facts } = await run(pipeline, await rowOf(pipeline, { prompt: red, upscale: 2 }));
      expect(facts).toEqual({ seed: 7, width: 128, height: 128, nsfw: true });
      expect(data).toHaveLength(128 * 128 * 3);
      expect(isBlack(data)).toBe(true);
    }));

  it('resumes from a checkpoint taken during upscaling', () =>
    load({ safetyChecker: 'off' }, async (pipeline) => {
      const whole = await run(pipeline, await rowOf(pipeline, { upscale: 2, numInferenceSteps: 2 }));
      const row = await rowOf(pipeline, { upscale: 2, numInferenceSteps: 2 });
      for (let step = 0; step < 2; step++) await pipeline.step([row]);
      const checkpoints = new Map([[0, pipeline.checkpoint(row)]]);
      const { request: input } = row;
      const [resumed] = await pipeline.createRows({ id: 'request', input, checkpoints });
      expect([resumed!.step, resumed!.stepsLeft]).toEqual([2, 1]);
      expect(Buffer.compare((await run(pipeline, resumed!)).data, whole.data)).toBe(0);
    }));

  it.each([
    [
      'another factor',
      async () => writeUpscaler(directory, 4, 3),
      /upscaler_x4\/model.onnx: returns \[1, 3, 144, 192\] for/,
    ],
    [
      'a configuration of another upscaler',
      () => writeFile(join(directory, 'upscaler_x4/config.json'), '{"upscale": 2}'),
      /upscaler_x4\/config.json: upscale: is 2, expected 4, as its folder says/,
    ],
  ])('cannot be loaded with %s', async (_what, damage, message) => {
    await damage();
    const error = { code: 'model_unsupported', message: expect.stringMatching(message) as string };
    await expect(load({}, async () => {})).rejects.toMatchObject(error);
    await rm(join(directory, 'upscaler_x4'), { recursive: true });
    writeUpscaler(directory, 4);
  });

  it('refuses a factor that it has no upscaler for', async () => {
    await load({ directory: source }, async (pipeline) => {
      await expect(rowOf(pipeline, { upscale: 4 })).rejects.toMatchObject({
        code: 'invalid_request',
        message: 'upscale: the model has no upscaler for 4',
      });
    });
  });
});

describe('the upscaler of the embedded model', () => {
  const { width, height } = { width: 448, height: 320 };
  const image = {
    data: Uint8Array.from({ length: width * height * 3 }, (_, at) => {
      const [x, y] = [Math.floor(at / 3) % width, Math.floor(at / 3 / width)];
      return 128 + 100 * Math.sin(x / 9) * Math.cos(y / 7 + (at % 3));
    }),
    width,
    height,
  };

  it('makes the same image in tiles as in one call', async () => {
    const file = join(source, 'upscaler_x2/model.onnx');
    const session = await loadOnnxSession({ file, threads: 1 });
    const upscaler = await loadUpscaler({ file, session }, 2);
    const target = new Uint8Array(width * height * 4 * 3);
    const pieces = upscaleSteps({ width, height, upscale: 2 });
    expect(pieces).toBe(6);
    for (let at = 0; at < pieces; at++) await upscaler.upscaleTile({ image, target }, at);
    const planes = Float32Array.from({ length: width * height * 3 }, (_, at) => {
      const pixel = at % (width * height);
      return image.data[pixel * 3 + Math.floor(at / (width * height))]! / 255;
    });
    const whole = interleaved((await upscaler.run(planes, { width, height })).data);
    await session.dispose();
    // A different order of summation may change a rounding.
    expect(Math.max(...levels(target, whole))).toBeLessThanOrEqual(1);
  });
});

/** Converts planes of 0 … 1 to interleaved 8-bit RGB. */
function interleaved(planes: Float32Array): Uint8Array {
  const pixels = planes.length / 3;
  return Uint8Array.from({ length: planes.length }, (_, at) => {
    const value = planes[(at % 3) * pixels + Math.floor(at / 3)]!;
    return Math.round(Math.min(Math.max(value, 0), 1) * 255);
  });
}

/** Returns the distinct differences. */
function levels(left: Uint8Array, right: Uint8Array): Set<number> {
  return new Set(left.map((value, at) => Math.abs(value - right[at]!)));
}

/** Repeats every pixel `times` times in both directions. */
function repeated(data: Uint8Array, side: number, times: number): Uint8Array {
  return Uint8Array.from({ length: data.length * times ** 2 }, (_, at) => {
    const [x, y] = [Math.floor(at / 3) % (side * times), Math.floor(at / 3 / side / times)];
    return data[(Math.floor(y / times) * side + Math.floor(x / times)) * 3 + (at % 3)]!;
  });
}
