/** Tests rows of images, in this process and in an engine process (built code: `npm run build` first). */
import { resolve } from 'node:path';
import { loadPipeline } from '@darkroom/diffusion';
import type { ModelCard, RowCheckpoint, RowRequest } from '@darkroom/core';
import { imageInput } from '@darkroom/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import type { ExecutorEvent } from '../executor-event.ts';
import { InProcessExecutor } from './in-process-executor.ts';
import { ProcessExecutor } from '../process/process-executor.ts';

const directory = resolve(import.meta.dirname, '../../../../models/emoji-sd');
const maxSlots = 3;
type Matcher = (event: ExecutorEvent) => boolean;

/** Runs long enough to be still running when a test acts on its first steps. */
const large = { width: 128, height: 128, n: 2, numInferenceSteps: 200 };

const isEnd =
  (requestId: string): Matcher =>
  (event) =>
    event.type.startsWith('request-') && (event as { requestId: string }).requestId === requestId;

const isStep =
  (requestId: string, step: number): Matcher =>
  (event) =>
    event.type === 'progress' && event.requestId === requestId && event.done >= step;

function request(id: string, changes: Record<string, unknown> = {}, more: Partial<RowRequest> = {}) {
  const size = { width: 64, height: 64, numInferenceSteps: 6, guidanceScale: 3 };
  const input = {
    ...imageInput,
    ...size,
    prompt: 'a cat on a blue background',
    scheduler: 'dpmpp_2m',
    previewEvery: 0,
  };
  return { id, input: { ...input, seed: 1, ...changes }, ...more };
}

describe.each(['in-process', 'process'] as const)('images in the %s executor', (kind) => {
  const log = new EventLog();
  const model = { directory, threads: 1 };
  const options = { maxSlots, checkpointEvery: 2, onEvents: log.listener };
  const create = () =>
    kind === 'process'
      ? new ProcessExecutor({ ...options, model })
      : new InProcessExecutor({ ...options, loadPipeline: () => loadPipeline(model) });
  const executor = create();
  let card: ModelCard;

  beforeAll(async () => {
    card = await executor.start();
  });
  afterAll(() => executor.shutdown());
  beforeEach(() => {
    log.events = [];
  });

  async function imageOf(id: string, changes: Record<string, unknown> = {}, more: Partial<RowRequest> = {}) {
    executor.submit([request(id, changes, more)]);
    await log.next(isEnd(id));
    return log.of('output', id)[0]!.output.data;
  }

  it('returns the card of the model', () => {
    expect(card).toMatchObject({ id: 'emoji-sd', defaultScheduler: 'dpmpp_2m', maxPromptTokens: 77 });
  });

  it('reports steps, previews, the output and the end, in order', async () => {
    executor.submit([request('a', { previewEvery: 2, numInferenceSteps: 5 })]);
    await log.next(isEnd('a'));
    const rowEvents = log.events.filter(({ type }) => type !== 'stats' && type !== 'checkpoint');
    expect(rowEvents.map((event) => (event.type === 'progress' ? `${event.done}/${event.total}` : event.type))).toEqual(
      ['1/5', '2/5', '3/5', '4/5', 'row-releasing', '5/5', 'output', 'request-done'],
    );
    const previews = log.of('progress').map(({ preview }) => preview?.facts);
    expect(previews).toEqual([undefined, { width: 8, height: 8 }, undefined, { width: 8, height: 8 }, undefined]);
    const [{ output }] = log.of('output') as [ReturnType<typeof log.of<'output'>>[0]];
    expect(output.facts).toEqual({ seed: 1, width: 64, height: 64 });
    expect(output.data).toHaveLength(64 * 64 * 3);
    expect(log.of('stats')[0]).toMatchObject({ rows: 1, modelRows: 2, tableSlots: 1, waitingRequests: 0 });
  });

  it('counts upscaling steps in progress, announces the last of them, and interleaves other rows', async () => {
    executor.submit([request('a', { upscale: 2, numInferenceSteps: 3 }), request('b', { numInferenceSteps: 6 })]);
    await Promise.all([log.next(isEnd('a')), log.next(isEnd('b'))]);
    const rowEvents = log.events.filter((event) => 'requestId' in event && event.requestId === 'a');
    const words = rowEvents.map((event) => (event.type === 'progress' ? `${event.done}/${event.total}` : event.type));
    expect(words.slice(words.indexOf('row-releasing'))).toEqual(['row-releasing', '4/4', 'output', 'request-done']);
    // Progress of several steps may arrive as one event.
    const before = words.slice(0, words.indexOf('row-releasing')).filter((word) => word !== 'checkpoint');
    expect(before).toEqual(['1/4', '2/4', '3/4'].filter((word) => before.includes(word)));
    expect(before.at(-1)).toBe('3/4');
    expect(new Set(log.of('stats').map(({ shapeKey }) => shapeKey))).toEqual(new Set(['64x64', '64x64 x2']));
    const [{ output }] = log.of('output', 'a') as [ReturnType<typeof log.of<'output'>>[0]];
    expect(output.facts).toEqual({ seed: 1, width: 128, height: 128 });
    expect(output.data).toHaveLength(128 * 128 * 3);
  });

  it('gives an upscaled image the same bytes in a batch as alone', async () => {
    const changes = { upscale: 2, numInferenceSteps: 3 };
    const alone = await imageOf('a', changes);
    log.events = [];
    executor.submit([request('b', { seed: 3 }), request('a', changes), request('c', { ...changes, seed: 2 })]);
    await Promise.all(['a', 'b', 'c'].map((id) => log.next(isEnd(id))));
    expect(Buffer.compare(log.of('output', 'a')[0]!.output.data, alone)).toBe(0);
  });

  it('lets requests join between steps, and gives each the same bytes as alone', async () => {
    const alone = [await imageOf('a'), await imageOf('b', { seed: 2, guidanceScale: 1, scheduler: 'euler' })];
    log.events = [];
    // b fits only once c has left, after two steps of a.
    executor.submit([request('a'), request('c', { n: 2, numInferenceSteps: 2 })]);
    executor.submit([request('b', { seed: 2, guidanceScale: 1, scheduler: 'euler' }), request('bad', { width: 100 })]);
    await Promise.all(['a', 'b', 'bad'].map((id) => log.next(isEnd(id))));
    const together = ['a', 'b'].map((id) => log.of('output', id)[0]!.output.data);
    expect(log.of('stats').some(({ rows, modelRows }) => rows === 2 && modelRows === 3)).toBe(true);
    for (const at of [0, 1]) expect(Buffer.compare(together[at]!, alone[at]!)).toBe(0);
    expect(log.of('request-failed')).toEqual([
      {
        type: 'request-failed',
        requestId: 'bad',
        code: 'invalid_request',
        message: 'width must be a multiple of 32',
      },
    ]);
  });

  it('frees the rows of a canceled request within a step', async () => {
    executor.submit([request('a', large)]);
    await log.next(isStep('a', 1));
    // The failure of this request marks, in the log, where the engine read the messages just before the cancel.
    executor.submit([request('bad', { width: 100 })]);
    executor.cancel('a');
    executor.submit([request('b', { n: maxSlots, numInferenceSteps: 2 })]);
    await log.next(isEnd('b'));
    expect(log.of('request-canceled')).toHaveLength(1);
    const after = (id: string) => log.events.slice(log.events.findIndex(isEnd(id)));
    const stepsOfA = (events: ExecutorEvent[]) =>
      new Set(events.filter(isStep('a', 1)).map((event) => 'done' in event && event.done));
    expect(stepsOfA(after('a')).size).toBe(0);
    // The engine may have begun a step when the message arrives, and takes one more before reading it.
    expect(stepsOfA(after('bad')).size).toBeLessThanOrEqual(2);
  });

  it('alternates the steps of two shapes', async () => {
    const alone = [await imageOf('a'), await imageOf('b', { width: 96 })];
    log.events = [];
    executor.submit([request('a'), request('b', { width: 96 })]);
    await Promise.all([log.next(isEnd('a')), log.next(isEnd('b'))]);
    const shapes = log.of('stats').map(({ shapeKey }) => shapeKey);
    const order = shapes.map((shape) => 'ab'[[...new Set(shapes)].indexOf(shape)]);
    expect(order.join('')).toBe('abababababab');
    const together = ['a', 'b'].map((id) => log.of('output', id)[0]!.output.data);
    for (const at of [0, 1]) expect(Buffer.compare(together[at]!, alone[at]!)).toBe(0);
  });

  it('resumes from a checkpoint to the same bytes', async () => {
    const whole = await imageOf('a', { scheduler: 'euler_ancestral' });
    const { checkpoint } = log.of('checkpoint', 'a').find((event) => event.checkpoint.done === 4)!;
    log.events = [];
    const checkpoints = new Map<number, RowCheckpoint>([[0, checkpoint]]);
    const resumed = await imageOf('a', { scheduler: 'euler_ancestral' }, { checkpoints });
    expect(log.of('progress').map(({ done }) => done)).toEqual([5, 6]);
    expect(Buffer.compare(resumed, whole)).toBe(0);
  });

  it('checkpoints on shutdown, refuses work while down, and starts again', async () => {
    const whole = await imageOf('a', { numInferenceSteps: 30 });
    log.events = [];
    // The two shapes alternate, so a is still running at the shutdown.
    executor.submit([request('a', { numInferenceSteps: 30 }), request('b', large)]);
    await log.next(isStep('a', 3));
    await executor.shutdown({ shouldCheckpoint: true });
    expect(log.events.slice(-3)).toMatchObject([
      { type: 'checkpoint', requestId: 'a', index: 0 },
      { type: 'checkpoint', requestId: 'b', index: 0 },
      { type: 'checkpoint', requestId: 'b', index: 1 },
    ]);
    expect(log.of('request-done')).toEqual([]);
    expect(() => executor.submit([request('b')])).toThrow('the engine is not running');
    expect(await executor.checkHealth()).toMatchObject({ isHealthy: false });
    await executor.shutdown();

    await executor.start();
    const { checkpoint } = log.of('checkpoint', 'a').at(-1)!;
    const more = { checkpoints: new Map([[0, checkpoint]]) };
    log.events = [];
    expect(Buffer.compare(await imageOf('a', { numInferenceSteps: 30 }, more), whole)).toBe(0);
  });
});
