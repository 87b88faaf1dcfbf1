import { nonEmpty } from '@darkroom/core';
import { resolve } from 'node:path';
import type { RowCheckpoint, RowEvent } from '@darkroom/core';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import recordedSteps from '../../../../tools/golden/vectors/emoji-sd-int8-schedulers.json' with { type: 'json' };
import recorded from '../../../../tools/golden/vectors/emoji-sd-int8-seed7.json' with { type: 'json' };
import { loadPipeline } from './load-pipeline.ts';
import { schedulerNames } from '../schedulers/config/scheduler-config.ts';
import type { ImagePipeline, ImageRow } from '../image/image-row.ts';

const directory = resolve(import.meta.dirname, '../../../../models/emoji-sd');

function imageInput(changes: Record<string, unknown> = {}) {
  return {
    prompt: 'a red apple on a white background',
    negativePrompt: '',
    width: 128,
    height: 128,
    n: 1,
    numInferenceSteps: 10,
    guidanceScale: 3,
    seed: 7,
    scheduler: 'dpmpp_2m',
    outputFormat: 'png',
    outputCompression: 100,
    previewEvery: 0,
    ...changes,
  };
}

describe('Stable Diffusion', () => {
  let pipeline: ImagePipeline;
  beforeAll(async () => {
    pipeline = await loadPipeline({ directory, threads: 2 });
  });
  afterAll(() => pipeline.dispose());

  async function rowOf(changes: Record<string, unknown> = {}, checkpoint?: RowCheckpoint) {
    const [row] = await pipeline.createRows({
      id: 'request',
      input: imageInput(changes),
      ...(checkpoint === undefined ? {} : { checkpoints: new Map([[0, checkpoint]]) }),
    });
    return row!;
  }

  async function run(row: ImageRow) {
    while (!row.isDone) await pipeline.step([row]);
    return pipeline.finish(row);
  }

  it('makes the image that diffusers makes', async () => {
    const row = await rowOf();
    const { data, facts } = await run(row);
    // torch's own noise differs by 1e-6 between CPUs (torch-generator.ts), and ten steps propagate that.
    const errors = row.latents.map((value, at) => Math.abs(value - recorded.latents[at]!));
    expect(Math.max(...errors)).toBeLessThan(2e-4);
    expect(facts).toEqual({ seed: 7, width: 128, height: 128 });
    const pooled = pool(data, 128, 8);
    // Recorded channel by channel, before rounding to 8 bits.
    const differences = pooled.map((value, at) =>
      Math.abs(value - recorded.pooledImage[(at % 3) * 256 + Math.floor(at / 3)]!),
    );
    expect(Math.max(...differences)).toBeLessThan(1 / 255);
  });

  it.each(Object.entries(recordedSteps.latents))("takes diffusers' steps, with %s", async (scheduler, base64) => {
    const { buffer } = Uint8Array.from(Buffer.from(base64, 'base64'));
    const row = await rowOf({ scheduler, numInferenceSteps: recordedSteps.steps });
    const { length } = row.latents;
    expect(buffer.byteLength / Float32Array.BYTES_PER_ELEMENT).toBe(row.totalSteps * length);
    while (!row.isDone) {
      const expected = new Float32Array(buffer).subarray(row.step * length, (row.step + 1) * length);
      await pipeline.step([row]);
      const difference = Math.hypot(...row.latents.map((value, at) => value - expected[at]!));
      // At most 3e-6 on the recording machine; torch's noise and ONNX Runtime's sums differ a little between CPUs.
      expect(difference / Math.hypot(...expected)).toBeLessThan(1e-4);
    }
  });

  it('makes the same bytes for each image of a full and changing batch as alone', async () => {
    const schedulers = pipeline.card.schedulers;
    const requests = Array.from({ length: schedulers.length }, (_, at) => ({
      prompt: `a ${['cat', 'dog', 'red car', 'tree'][at % 4]!} on a ${['blue', 'white', 'green'][at % 3]!} background`,
      negativePrompt: at % 2 ? 'a house' : '',
      numInferenceSteps: 3 + at,
      guidanceScale: [1, 3, 5.5][at % 3]!,
      guidanceRescale: [0, 0.7][at % 2]!,
      seed: 1000 + at,
      scheduler: schedulers[at]!,
    }));
    const alone = [];
    for (const request of requests) alone.push(await run(await rowOf(request)));

    const rows = await Promise.all(requests.map((request) => rowOf(request)));
    const together = [];
    // One more row joins at each step; the first rows finish before the last ones.
    for (let turn = 0; together.filter(Boolean).length < rows.length; turn++) {
      const present = nonEmpty(rows.slice(0, turn + 1).filter((row) => !row.isDone));
      await pipeline.step(present);
      for (const row of present) {
        if (row.step === row.totalSteps) together[rows.indexOf(row)] = await pipeline.finish(row);
      }
    }
    for (const [at, image] of alone.entries()) expect(Buffer.compare(image.data, together[at]!.data)).toBe(0);
  });

  it('computes no unconditional half at guidance 1', async () => {
    const rows = [await rowOf({ guidanceScale: 1 }), await rowOf({ guidanceScale: 0 }), await rowOf()] as const;
    expect(await pipeline.step(rows)).toMatchObject({ modelRows: 4, failures: new Map() });
  });

  it.each([
    ['red', [0]],
    ['green', [1]],
    ['blue', [2]],
    ['yellow', [0, 1]],
  ] as const)('makes the background %s if the prompt requests it', async (color, strong) => {
    const row = await rowOf({ prompt: `a cat on a ${color} background`, numInferenceSteps: 12 });
    const { data } = await run(row);
    for (const corner of [0, 127, 127 * 128, 128 * 128 - 1]) {
      const pixel = [...data.subarray(corner * 3, corner * 3 + 3)];
      const weak = pixel.filter((_, channel) => !(strong as readonly number[]).includes(channel));
      for (const channel of strong) expect(pixel[channel]! - Math.max(...weak)).toBeGreaterThan(40);
    }
  });

  it('applies the negative prompt', async () => {
    const plain = await run(await rowOf());
    const changed = await run(await rowOf({ negativePrompt: 'a green apple' }));
    expect(Buffer.compare(plain.data, changed.data)).not.toBe(0);
  });

  it('makes images of other sizes', async () => {
    const row = await rowOf({ width: 160, height: 96, previewEvery: 1 });
    const { events } = await pipeline.step([row]);
    expect(events.get(row)).toMatchObject([{ preview: { facts: { width: 20, height: 12 } } }]);
    const { data, facts } = await run(row);
    expect(facts).toEqual({ seed: 7, width: 160, height: 96 });
    expect(data).toHaveLength(160 * 96 * 3);
  });

  describe('from an input image', () => {
    const apple = { prompt: 'a red apple on a blue background' };
    const strawberry = { prompt: 'a strawberry on a blue background', seed: 8, image: true };
    let drawn: Uint8Array;
    let image: Uint8Array;
    beforeAll(async () => {
      drawn = (await run(await rowOf({ ...apple, numInferenceSteps: 20 }))).data;
      image = await pngOf(drawn, 3);
    });

    async function change(changes: Record<string, unknown>, mask?: Uint8Array) {
      const attachments = new Map([['image', image], ...(mask === undefined ? [] : [['mask', mask] as const])]);
      const input = imageInput({ numInferenceSteps: 20, ...strawberry, ...changes });
      const [row] = await pipeline.createRows({ id: 'request', input, attachments });
      return (await run(row!)).data;
    }

    it('draws another object on the same background', async () => {
      const changed = await change({ strength: 0.7 });
      // Encoding and decoding alone changes pixels by about 3.
      expect(differenceOf(changed, drawn, (at) => edge(at) < 8)).toBeLessThan(12);
      expect(differenceOf(changed, drawn, (at) => edge(at) > 32)).toBeGreaterThan(36);
    });

    it('changes the image less at a lower strength', async () => {
      const differences: number[] = [];
      for (const strength of [0.05, 0.3, 0.8]) {
        differences.push(differenceOf(await change({ strength }), drawn, () => true));
      }
      expect(differences).toEqual(differences.toSorted((a, b) => a - b));
    });

    it('repaints the masked area and preserves the rest', async () => {
      const mask = Uint8Array.from({ length: 128 * 128 }, (_, at) => (at % 128 < 64 ? 255 : 0));
      const changed = await change(
        { ...apple, prompt: 'a cat on a green background', mask: true, strength: 1 },
        await pngOf(mask, 1),
      );
      expect(differenceOf(changed, drawn, (at) => at % 128 > 72)).toBeLessThan(12);
      expect(differenceOf(changed, drawn, (at) => at % 128 < 56)).toBeGreaterThan(30);
    });
  });

  it('previews the finished image', async () => {
    const row = await rowOf({ prompt: 'a cat on a blue background', previewEvery: 5 });
    const events: RowEvent[] = [];
    while (row.step < 5) events.push(...(await pipeline.step([row])).events.get(row)!);
    const [{ preview: fifth }] = events.splice(-1) as [Extract<RowEvent, { type: 'progress' }>];
    expect(events).toEqual([1, 2, 3, 4].map((done) => ({ type: 'progress', done, total: row.totalSteps })));
    const preview = [...fifth!.data].map((value) => value / 255);
    const image = pool((await run(row)).data, 128, 8);
    const error = preview.reduce((sum, value, at) => sum + Math.abs(value - image[at]!), 0) / preview.length;
    expect(error).toBeLessThan(0.1);
  });

  it('increments seeds with wraparound, and makes only the requested images', async () => {
    const rows = await pipeline.createRows({
      id: 'request',
      input: imageInput({ n: 3, seed: 2 ** 32 - 1 }),
      indexes: [0, 2],
    });
    expect(rows.map(({ index, seed }) => [index, seed])).toEqual([
      [0, 2 ** 32 - 1],
      [2, 1],
    ]);
  });

  it.each(schedulerNames.filter((name) => name !== 'flow_match_euler'))(
    'ends in the same bytes from a checkpoint, with %s',
    async (scheduler) => {
      const changes = { scheduler, width: 64, height: 64, numInferenceSteps: 8 };
      const whole = await run(await rowOf(changes));
      const first = await rowOf(changes);
      while (first.step < 4) await pipeline.step([first]);
      const checkpoint = pipeline.checkpoint(first);
      const resumed = await rowOf(changes, structuredClone(checkpoint));
      expect([checkpoint.done, resumed.step]).toEqual([4, 4]);
      expect(Buffer.compare((await run(resumed)).data, whole.data)).toBe(0);
    },
  );

  it('starts over from a checkpoint that is damaged or of another row', async () => {
    const other = await rowOf({ seed: 8 });
    await pipeline.step([other]);
    const { data } = pipeline.checkpoint(other);
    for (const damaged of [data, data.subarray(0, data.length - 8), data.subarray(0, 2), new Uint8Array(5000).fill(9)])
      expect((await rowOf({}, { done: 1, data: damaged })).step).toBe(0);
    expect((await rowOf({ seed: 8 }, { done: 1, data })).step).toBe(1);
  });

  it('fails a row whose values became NaN, and no other', async () => {
    const broken = await rowOf();
    const neighbour = await rowOf({ seed: 9 });
    const alone = await rowOf({ seed: 9 });
    broken.latents[3] = NaN;
    const { failures } = await pipeline.step([broken, neighbour]);
    expect([...failures]).toMatchObject([[{ seed: 7 }, { code: 'engine_failed' }]]);
    await pipeline.step([alone]);
    expect(neighbour.latents).toEqual(alone.latents);
  });

  it.each([
    [{ width: 100 }, 'width must be a multiple of 32'],
    [{ height: 512 }, 'height must be 64 … 256, not 512'],
    [{ numInferenceSteps: 0 }, 'numInferenceSteps must be 1 … 200, not 0'],
    [{ scheduler: 'heun' }, 'scheduler: '],
    [{ scheduler: 'flow_match_euler' }, 'scheduler: flow_match_euler cannot serve this model; expected one of ddim, '],
    [{ prompt: 3 }, 'prompt: '],
  ])('refuses %j', async (change, message) => {
    await expect(rowOf(change)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(message) as string,
    });
  });
});

/** Returns the distance in pixels to the nearest edge of the image. */
function edge(at: number): number {
  const [x, y] = [at % 128, Math.floor(at / 128)];
  return Math.min(x, 127 - x, y, 127 - y);
}

async function pngOf(data: Uint8Array, channels: 1 | 3): Promise<Uint8Array> {
  return sharp(data, { raw: { width: 128, height: 128, channels } })
    .png()
    .toBuffer();
}

/** Returns the mean absolute difference of the selected pixels, in levels of 255. */
function differenceOf(left: Uint8Array, right: Uint8Array, isSelected: (pixel: number) => boolean): number {
  const selected = [...left.keys()].filter((at) => isSelected(Math.floor(at / 3)));
  return selected.reduce((sum, at) => sum + Math.abs(left[at]! - right[at]!), 0) / selected.length;
}

/** Returns the means of squares of pixels, as fractions. */
function pool(rgb: Uint8Array, width: number, side: number): number[] {
  const columns = width / side;
  const sums = Array.from({ length: (rgb.length / 3 / side / side) * 3 }, () => 0);
  for (const [at, value] of rgb.entries()) {
    const pixel = Math.floor(at / 3);
    const cell = Math.floor(Math.floor(pixel / width) / side) * columns + Math.floor((pixel % width) / side);
    sums[cell * 3 + (at % 3)]! += value / 255 / (side * side);
  }
  return sums;
}
