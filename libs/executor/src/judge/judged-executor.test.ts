/** Tests moderation modules in their own processes. These run built code: `npm run build` first. */
import { ChildProcess, spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { imageInput } from '@darkroom/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { describeExecutor } from '../conformance/executor-conformance.ts';
import { ModuleChild } from '../module/module-child.ts';
import { ModuleExecutor } from '../module/module-executor.ts';
import { ProcessExecutor } from '../process/process-executor.ts';
import { InProcessExecutor } from '../testing/in-process-executor.ts';
import { WriterPipeline } from '../testing/writer-pipeline.ts';
import { JudgedExecutor, type JudgedExecutorOptions } from './judged-executor.ts';

const fixture = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const judge = fixture('./__fixtures__/judge.mjs');
const painter = fixture('../module/__fixtures__/painter.mjs');

function build(options: Partial<JudgedExecutorOptions> = {}) {
  const log = new EventLog();
  const executor = new JudgedExecutor({
    module: judge,
    model: 'mine',
    timeoutMs: 60_000,
    createExecutor: (onEvents) => new ModuleExecutor({ module: painter, model: 'mine', onEvents }),
    onEvents: log.listener,
    ...options,
  });
  return { log, executor };
}

function create(options: Partial<JudgedExecutorOptions> = {}) {
  const built = build(options);
  onTestFinished(() => built.executor.shutdown());
  return built;
}

async function open(options: Partial<JudgedExecutorOptions> = {}) {
  const opened = create(options);
  await opened.executor.start();
  return opened;
}

const request = (id: string, prompt: string, changes: object = {}) => ({
  id,
  input: { ...imageInput, prompt, scheduler: 'own', ...changes },
});

/** Returns the pids of the modules' processes. */
function readChildren(): string {
  return spawnSync('pgrep', ['-f', '-P', String(process.pid), 'module-process'], { encoding: 'utf8' }).stdout;
}

const noVerdict = (what: string) =>
  `moderation gave no verdict on ${what}, and nothing passes without one; try again later`;

const createWriter: JudgedExecutorOptions['createExecutor'] = (onEvents) =>
  new InProcessExecutor({ maxSlots: 3, loadPipeline: () => Promise.resolve(new WriterPipeline()), onEvents });

describe('a moderation module', () => {
  // Tests share an executor, whose moderation process is replaced when a test ends it.
  const { log, executor } = build();
  beforeAll(() => executor.start());
  afterAll(() => executor.shutdown());
  beforeEach(() => {
    log.events = [];
  });

  it('rejects prompts with its reason before an image is computed, and lets others pass', async () => {
    executor.submit([request('a', 'apples'), request('bad', 'forbidden')]);
    await Promise.all([log.end('a'), log.end('bad')]);
    expect(log.events.filter((event) => 'requestId' in event && event.requestId === 'bad')).toEqual([
      {
        type: 'request-failed',
        requestId: 'bad',
        code: 'content_policy_violation',
        message: 'the prompt is refused here: that is not allowed here',
      },
    ]);
    expect(log.outputs('a').get(0)).toHaveLength(16 * 16 * 3);
    expect(log.events.at(-1)).toEqual({ type: 'request-done', requestId: 'a' });
  });

  it('rejects an image before any preview or output is emitted, and fails its request', async () => {
    executor.submit([request('bad', 'image: forbidden: 1', { n: 3 }), request('a', 'apples', { n: 2 })]);
    expect(await log.end('bad')).toEqual({
      type: 'request-failed',
      requestId: 'bad',
      code: 'content_policy_violation',
      message: 'image 1 is refused here: that is not allowed here',
    });
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    expect([...log.outputs('bad').keys()]).not.toContain(1);
    expect(log.of('progress').filter(({ preview }) => preview !== undefined)).toEqual([]);
    const events = log.events.filter((event) => 'requestId' in event && event.requestId === 'bad');
    expect(events.at(-1)).toMatchObject({ type: 'request-failed' });
  });

  it.each([
    ['pixels', 'image: shape', '16x16 pixels 768'],
    ['files, as upstream servers and custom modules return them', 'file', '16x16 image/png 70'],
  ])('receives %s', async (_what, prompt, reason) => {
    executor.submit([request('a', prompt)]);
    expect(await log.end('a')).toMatchObject({ message: `image 0 is refused here: ${reason}` });
  });

  it.each([
    ['throws', 'out of order'],
    ['nothing', 'received undefined, expected { allowed: true } or { allowed: false, reason: "…" }'],
    ['no reason', 'received { allowed: false }, expected { allowed: true } or { allowed: false, reason: "…" }'],
    ['truthy', 'received 1, expected { allowed: true } or { allowed: false, reason: "…" }'],
    ['dies', 'exited with code 3'],
    ['rejects', 'exited with code 1: an unhandled rejection'],
  ])('lets no prompt or image pass on a fault, and moderates the next: %s', async (way, cause) => {
    executor.submit([request('prompt', way)]);
    const failure = { type: 'request-failed', code: 'unavailable', cause };
    expect(await log.end('prompt')).toEqual({ ...failure, requestId: 'prompt', message: noVerdict('the prompt') });
    executor.submit([request('image', `image: ${way}`)]);
    expect(await log.end('image')).toEqual({ ...failure, requestId: 'image', message: noVerdict('the image') });
    expect(log.of('output')).toEqual([]);
    executor.submit([request('a', 'apples'), request('bad', 'forbidden')]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    expect(await log.end('bad')).toMatchObject({ code: 'content_policy_violation' });
  });

  // A blocked process is replaced, and `late` makes its successor start more slowly than a verdict may take.
  it.each([
    ['hangs', 'mine'],
    ['blocks', 'late'],
  ])('times out if it %s, and moderates the next', async (way, model) => {
    const { log, executor } = await open({ timeoutMs: 1000, model });
    executor.submit([request('bad', way)]);
    const cause = 'no verdict within 1 s';
    expect(await log.end('bad')).toMatchObject({ type: 'request-failed', code: 'unavailable', cause });
    executor.submit([request('a', 'apples')]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });

  it('aborts a question on timeout and keeps the process if it answers a ping', async () => {
    const { log, executor } = await open({ timeoutMs: 2000 });
    const processes = readChildren();
    executor.submit([request('bad', 'hangs'), request('slow', 'ends on abort')]);
    for (const id of ['bad', 'slow']) expect(await log.end(id)).toMatchObject({ cause: 'no verdict within 2 s' });
    executor.submit([request('a', 'apples')]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    expect(readChildren()).toBe(processes);
  });

  it('does not retry a prompt that ends the process when the only other question has timed out', async () => {
    const { log, executor } = await open({ timeoutMs: 1000 });
    executor.submit([request('bad', 'hangs')]);
    await log.end('bad');
    const calls = vi.spyOn(ModuleChild.prototype, 'call');
    onTestFinished(() => calls.mockRestore());
    executor.submit([request('fatal', 'dies')]);
    expect(await log.end('fatal')).toMatchObject({ code: 'unavailable', cause: 'exited with code 3' });
    expect(calls).toHaveBeenCalledTimes(1);
  });

  it('times out and moderates the next in a new process if a killed process does not exit', async () => {
    const { log, executor } = await open({ timeoutMs: 1000 });
    const kill = vi.spyOn(ChildProcess.prototype, 'kill').mockReturnValue(true);
    onTestFinished(() => {
      const stuck = [...kill.mock.contexts] as ChildProcess[];
      kill.mockRestore();
      for (const each of stuck) each.kill('SIGKILL');
    });
    executor.submit([request('bad', 'blocks')]);
    expect(await log.end('bad')).toMatchObject({ code: 'unavailable', cause: 'no verdict within 1 s' });
    executor.submit([request('worse', 'blocks'), request('a', 'apples')]);
    expect(await log.end('worse')).toMatchObject({ code: 'unavailable', cause: 'no verdict within 1 s' });
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });

  it.each([
    ['dies', 60_000],
    ['rejects', 60_000],
    ['blocks', 3000],
  ])('retries the other prompts when one prompt ends the process: it %s', async (fault, timeoutMs) => {
    const { log, executor } = await open({ timeoutMs });
    // One process has all of these questions open.
    const ids = ['a', 'b', 'c', 'd'];
    executor.submit([...ids.map((id) => request(id, 'apples')), request('bad', fault), request('e', 'apples')]);
    expect(await log.end('bad')).toMatchObject({ code: 'unavailable', message: noVerdict('the prompt') });
    const ends = await Promise.all([...ids, 'e'].map((id) => log.end(id)));
    expect(ends.map(({ type }) => type)).toEqual(ends.map(() => 'request-done'));
  });

  it('starts no new process for open questions when it is stopped', async () => {
    const before = readChildren();
    const { executor } = await open();
    executor.submit([request('a', 'hangs'), request('b', 'hangs')]);
    await executor.shutdown();
    await new Promise(setImmediate);
    expect(readChildren()).toBe(before);
  });

  it('does not delay a cancel while a verdict is pending', async () => {
    executor.submit([request('prompt', 'hangs'), request('image', 'image: hangs'), request('a', 'apples')]);
    await log.end('a');
    executor.cancel('prompt');
    executor.cancel('image');
    for (const id of ['prompt', 'image'])
      expect(await log.end(id)).toEqual({ type: 'request-canceled', requestId: id });
  });

  it.each([
    ['./nowhere.mjs', 'mine', 'JUDGE is ./nowhere.mjs: expected the path of a module, and there is no such file'],
    [judge, 'unfit', `JUDGE is ${judge}: createJudge threw: has no weights`],
    [painter, 'mine', 'JUDGE is …/painter.mjs: expected a module that exports a function createJudge'],
    [judge, 'garbled', expect.stringMatching(/^JUDGE is …\/judge.mjs: Unable to deserialize/) as string],
    [judge, 'empty', 'JUDGE is …/judge.mjs: it did not report what it judges'],
  ])('fails start() and ends its process if it cannot start: %#', async (module, model, message) => {
    const before = readChildren();
    const { executor } = create({ module, model });
    await expect(executor.start()).rejects.toMatchObject({ message });
    await expect.poll(readChildren).toBe(before);
    expect(await executor.checkHealth()).toMatchObject({ isHealthy: false });
  });

  it('leaves previews and images unchanged if it moderates prompts only', async () => {
    const { log, executor } = await open({ module: fixture('./__fixtures__/prompts-only.mjs') });
    executor.submit([request('a', 'apples')]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    expect(log.of('progress').filter(({ preview }) => preview !== undefined)).toHaveLength(1);
  });

  it('does not moderate texts', async () => {
    // With `unfit`, a moderation process would fail to start.
    const { log, executor } = await open({ model: 'unfit', createExecutor: createWriter });
    executor.submit([{ id: 'a', input: { prompt: 'forbidden', slots: 1 } }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });
});

const directory = resolve(import.meta.dirname, '../../../../models/emoji-sd');
const size = { width: 64, height: 64, numInferenceSteps: 6, guidanceScale: 3, scheduler: 'dpmpp_2m' };

describeExecutor('of images, moderated', {
  create: (onEvents) =>
    new JudgedExecutor({
      module: judge,
      model: 'emoji-sd',
      timeoutMs: 60_000,
      createExecutor: (listener) =>
        new ProcessExecutor({ maxSlots: 3, checkpointEvery: 2, model: { directory, threads: 1 }, onEvents: listener }),
      onEvents,
    }),
  shortInput: ({ number, outputs }) => request('', 'a cat', { ...size, seed: number, n: outputs }).input,
  longInput: request('', 'a cat', { ...size, width: 256, height: 256, n: 2, numInferenceSteps: 200 }).input,
  badInput: {
    input: request('', 'a cat', { ...size, width: 100 }).input,
    message: 'width must be a multiple of 32',
  },
});
