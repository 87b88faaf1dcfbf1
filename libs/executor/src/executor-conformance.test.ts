/** What every executor keeps, with the embedded model. The process executor runs the built engine: `npm run build` first. */
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { ModelCard } from '@darkroom/core';
import { loadPipeline } from '@darkroom/diffusion';
import type { PipelineComponent, RowCheckpoint } from '@darkroom/diffusion';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ExecutorEvent } from './executor-event.ts';
import type { ExecutorRequest } from './executor.ts';
import { InProcessExecutor } from './in-process-executor.ts';
import { ProcessExecutor } from './process-executor.ts';

const directory = resolve(import.meta.dirname, '../../../models/emoji-sd');
const maxRows = 3;
type Matcher = (event: ExecutorEvent) => boolean;

/** Keeps what an executor says, and lets a test wait for it. */
class EventLog {
  events: ExecutorEvent[] = [];
  #waiters: { matches: Matcher; resolve: (event: ExecutorEvent) => void }[] = [];

  readonly listener = (batch: readonly ExecutorEvent[]): void => {
    for (const event of batch) {
      this.events.push(event);
      for (const waiter of this.#waiters.splice(0)) {
        if (waiter.matches(event)) waiter.resolve(event);
        else this.#waiters.push(waiter);
      }
    }
  };

  next(matches: Matcher): Promise<ExecutorEvent> {
    const found = this.events.find(matches);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve) => this.#waiters.push({ matches, resolve }));
  }

  of<Type extends ExecutorEvent['type']>(type: Type, requestId?: string) {
    return this.events.filter(
      (event): event is Extract<ExecutorEvent, { type: Type }> =>
        event.type === type && (requestId === undefined || ('requestId' in event && event.requestId === requestId)),
    );
  }
}

/** Takes so long that nobody who waits for its first steps finds it at its end. */
const large = { width: 128, height: 128, n: 2, numInferenceSteps: 200 };

const isEnd =
  (requestId: string): Matcher =>
  (event) =>
    event.type.startsWith('request-') && (event as { requestId: string }).requestId === requestId;

const isStep =
  (requestId: string, step: number): Matcher =>
  (event) =>
    event.type === 'progress' && event.requestId === requestId && event.done >= step;

function request(id: string, changes: Record<string, unknown> = {}, more: Partial<ExecutorRequest> = {}) {
  const input = {
    prompt: `a cat on a blue background`,
    negativePrompt: '',
    width: 64,
    height: 64,
    n: 1,
    numInferenceSteps: 6,
    guidanceScale: 3,
    seed: 1,
    scheduler: 'dpmpp_2m',
    outputFormat: 'png',
    outputCompression: 100,
    previewEvery: 0,
  };
  return { id, input: { ...input, ...changes }, ...more };
}

describe.each(['in-process', 'process'] as const)('the %s executor', (kind) => {
  const log = new EventLog();
  const model = { directory, threads: 1 };
  const options = { maxRows, checkpointEvery: 2, onEvents: log.listener };
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

  async function pictureOf(id: string, changes: Record<string, unknown> = {}, more: Partial<ExecutorRequest> = {}) {
    executor.submit([request(id, changes, more)]);
    await log.next(isEnd(id));
    return log.of('output', id)[0]!.output.data;
  }

  it('gives the card of the model', () => {
    expect(card).toMatchObject({ id: 'emoji-sd', defaultScheduler: 'dpmpp_2m', maxPromptTokens: 77 });
  });

  it('reports steps, previews, the output and the end, in order', async () => {
    executor.submit([request('a', { previewEvery: 2, numInferenceSteps: 5 })]);
    await log.next(isEnd('a'));
    const said = log.events.filter(({ type }) => type !== 'stats' && type !== 'checkpoint');
    expect(said.map((event) => (event.type === 'progress' ? `${event.done}/${event.total}` : event.type))).toEqual([
      '1/5',
      '2/5',
      '3/5',
      '4/5',
      'row-releasing',
      '5/5',
      'output',
      'request-done',
    ]);
    const previews = log.of('progress').map(({ preview }) => preview?.facts);
    expect(previews).toEqual([undefined, { width: 8, height: 8 }, undefined, { width: 8, height: 8 }, undefined]);
    const [{ output }] = log.of('output') as [ReturnType<typeof log.of<'output'>>[0]];
    expect(output.facts).toEqual({ seed: 1, width: 64, height: 64 });
    expect(output.data).toHaveLength(64 * 64 * 3);
    expect(log.of('stats')[0]).toMatchObject({ rows: 1, modelRows: 2, tableSlots: 1, waitingRequests: 0 });
  });

  it('lets requests join in flight, and gives each the bytes it has alone', async () => {
    const alone = [await pictureOf('a'), await pictureOf('b', { seed: 2, guidanceScale: 1, scheduler: 'euler' })];
    log.events = [];
    // There is room for b only when c has left, after two steps of a.
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
    // Its failure stands in the log where the engine has read what came just before the cancel.
    executor.submit([request('bad', { width: 100 })]);
    executor.cancel('a');
    executor.submit([request('b', { n: maxRows, numInferenceSteps: 2 })]);
    await log.next(isEnd('b'));
    expect(log.of('request-canceled')).toHaveLength(1);
    const after = (id: string) => log.events.slice(log.events.findIndex(isEnd(id)));
    const stepsOfA = (events: ExecutorEvent[]) =>
      new Set(events.filter(isStep('a', 1)).map((event) => 'step' in event && event.step));
    expect(stepsOfA(after('a')).size).toBe(0);
    // The message may find the engine with a step begun, and there is one more before it is read.
    expect(stepsOfA(after('bad')).size).toBeLessThanOrEqual(2);
  });

  it('lets what finds no room wait its turn', async () => {
    executor.submit(['a', 'b', 'c'].map((id) => request(id, { n: 2, numInferenceSteps: 3 })));
    await log.next(isEnd('c'));
    expect(Math.max(...log.of('stats').map(({ rows }) => rows))).toBe(maxRows);
    expect(log.of('request-done').map(({ requestId }) => requestId)).toEqual(['a', 'b', 'c']);
  });

  it('runs two shapes side by side', async () => {
    const alone = [await pictureOf('a'), await pictureOf('b', { width: 96 })];
    log.events = [];
    executor.submit([request('a'), request('b', { width: 96 })]);
    await Promise.all([log.next(isEnd('a')), log.next(isEnd('b'))]);
    const order = log.of('progress').map(({ requestId }) => requestId);
    expect(order.join('')).toBe('abababababab');
    const together = ['a', 'b'].map((id) => log.of('output', id)[0]!.output.data);
    for (const at of [0, 1]) expect(Buffer.compare(together[at]!, alone[at]!)).toBe(0);
  });

  it('goes on from a checkpoint to the same bytes', async () => {
    const whole = await pictureOf('a', { scheduler: 'euler_ancestral' });
    const { checkpoint } = log.of('checkpoint', 'a').find((event) => event.checkpoint.step === 4)!;
    log.events = [];
    const checkpoints = new Map<number, RowCheckpoint>([[0, checkpoint]]);
    const resumed = await pictureOf('a', { scheduler: 'euler_ancestral' }, { checkpoints });
    expect(log.of('progress').map(({ done }) => done)).toEqual([5, 6]);
    expect(Buffer.compare(resumed, whole)).toBe(0);
  });

  it('says how it is', async () => {
    expect(await executor.checkHealth()).toMatchObject({ isHealthy: true, rows: 0, waitingRequests: 0 });
  });

  it('checkpoints on shutdown, refuses work while down, and starts again', async () => {
    const whole = await pictureOf('a', { numInferenceSteps: 30 });
    log.events = [];
    // They take turns, so that a has not ended when the shutdown comes.
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
    expect(Buffer.compare(await pictureOf('a', { numInferenceSteps: 30 }, more), whole)).toBe(0);
  });
});

describe('the process executor', () => {
  const model = { directory, threads: 1 };

  it('says why a model cannot be started, and can be tried again at once', async () => {
    const log = new EventLog();
    const executor = new ProcessExecutor({ maxRows, onEvents: log.listener, model: { directory: '/nowhere/model' } });
    for (const attempt of [1, 2]) {
      await expect(executor.start(), `attempt ${attempt}`).rejects.toMatchObject({
        code: 'model_unsupported',
        message: 'model_index.json: is missing',
      });
    }
    expect(log.events).toEqual([]);
  });

  it('says that its engine is lost, with what it had, and starts another', async () => {
    const log = new EventLog();
    const executor = new ProcessExecutor({ maxRows, onEvents: log.listener, model });
    await executor.start();
    executor.submit([request('a', large), request('b', { numInferenceSteps: 1 })]);
    await log.next(isEnd('b'));
    process.kill(executor.enginePid!, 'SIGKILL');
    const lost = await log.next(({ type }) => type === 'engine-lost');
    expect(lost).toEqual({ type: 'engine-lost', message: 'the engine was killed by SIGKILL', requestIds: ['a'] });
    await executor.start();
    executor.submit([request('a', { numInferenceSteps: 1 })]);
    await log.next(isEnd('a'));
    await executor.shutdown();
  });

  it('ends an engine that hangs, and says that it is lost', async () => {
    const log = new EventLog();
    const executor = new ProcessExecutor({ maxRows, onEvents: log.listener, model });
    await executor.start();
    executor.submit([request('a', large)]);
    process.kill(executor.enginePid!, 'SIGSTOP');
    executor.kill();
    expect(await log.next(({ type }) => type === 'engine-lost')).toMatchObject({ requestIds: ['a'] });
  });

  it('keeps the event loop of its own process free', async () => {
    const log = new EventLog();
    const executor = new ProcessExecutor({ maxRows, onEvents: log.listener, model });
    await executor.start();
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 5);
    executor.submit([request('a', { numInferenceSteps: 12, width: 128, height: 128, n: 3 })]);
    await log.next(isEnd('a'));
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(40);
    await executor.shutdown();
  });

  it('says what each part of the model runs on', async () => {
    const onLoaded = vi.fn<(components: readonly PipelineComponent[]) => void>();
    const devices = ['cuda', 'cpu'] as const;
    const options = { maxRows, onEvents: () => {}, onLoaded, model: { ...model, devices } };
    const executor = new ProcessExecutor(options);
    await executor.start();
    const refusals = [{ device: 'cuda', reason: expect.stringContaining('shared library') as string }];
    const parts = ['text_encoder', 'unet', 'vae_decoder'].map((part) => ({ part, device: 'cpu', refusals }));
    expect(onLoaded.mock.calls).toEqual([[parts]]);
    await executor.shutdown();
  });

  it('leaves no engine behind when its own process is killed', async () => {
    const built = resolve(import.meta.dirname, '../dist/index.js');
    const script = `
      const { ProcessExecutor } = await import(${JSON.stringify(built)});
      const executor = new ProcessExecutor({
        model: ${JSON.stringify(model)}, maxRows: 3,
        onEvents: () => { process.stdout.write(String(executor.enginePid), () => process.kill(process.pid, 'SIGKILL')); },
      });
      await executor.start();
      executor.submit([${JSON.stringify(request('a', { numInferenceSteps: 200 }))}]);`;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    const { signal, stdout } = await run.then(
      () => expect.unreachable('it was to be killed'),
      (error: unknown) => error as { signal: string; stdout: string },
    );
    expect(signal).toBe('SIGKILL');
    await expect.poll(() => isAlive(Number.parseInt(stdout, 10)), { timeout: 10_000 }).toBe(false);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
