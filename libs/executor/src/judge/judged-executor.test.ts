/** Modules that judge, in processes of their own: what runs there is built, so `npm run build` first. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { describeExecutor } from '../conformance/executor-conformance.ts';
import { ModuleExecutor } from '../module/module-executor.ts';
import { ProcessExecutor } from '../process/process-executor.ts';
import { InProcessExecutor } from '../testing/in-process-executor.ts';
import { WriterPipeline } from '../testing/writer-pipeline.ts';
import { JudgedExecutor, type JudgedExecutorOptions } from './judged-executor.ts';

const fixture = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const judge = fixture('./__fixtures__/judge.mjs');
const painter = fixture('../module/__fixtures__/painter.mjs');

function create(options: Partial<JudgedExecutorOptions> = {}) {
  const log = new EventLog();
  const executor = new JudgedExecutor({
    module: judge,
    model: 'mine',
    timeoutMs: 60_000,
    createExecutor: (onEvents) => new ModuleExecutor({ module: painter, model: 'mine', onEvents }),
    onEvents: log.listener,
    ...options,
  });
  onTestFinished(() => executor.shutdown());
  return { log, executor };
}

async function open(options: Partial<JudgedExecutorOptions> = {}) {
  const opened = create(options);
  await opened.executor.start();
  return opened;
}

const request = (id: string, prompt: string, changes: object = {}) => ({
  id,
  input: {
    prompt,
    negativePrompt: '',
    width: 16,
    height: 16,
    n: 1,
    numInferenceSteps: 4,
    guidanceScale: 1,
    guidanceRescale: 0,
    seed: 7,
    scheduler: 'own',
    outputFormat: 'png',
    outputCompression: 100,
    previewEvery: 2,
    ...changes,
  },
});

const noVerdict = (what: string) =>
  `what judges requests here gave no verdict on ${what}, and nothing passes without one; try again later`;

const createWriter: JudgedExecutorOptions['createExecutor'] = (onEvents) =>
  new InProcessExecutor({ maxSlots: 3, loadPipeline: () => Promise.resolve(new WriterPipeline()), onEvents });

describe('a judge', () => {
  it('refuses prompts before anything is drawn, with its reason, and lets others pass', async () => {
    const { log, executor } = await open();
    executor.submit([request('a', 'apples'), request('bad', 'forbidden')]);
    await Promise.all([log.end('a'), log.end('bad')]);
    expect(log.events.filter((event) => 'requestId' in event && event.requestId === 'bad')).toEqual([
      {
        type: 'request-failed',
        requestId: 'bad',
        code: 'content_policy_violation',
        message: 'the prompt is refused here: nobody may wish for that',
      },
    ]);
    expect(log.outputs('a').get(0)).toHaveLength(16 * 16 * 3);
    expect(log.events.at(-1)).toEqual({ type: 'request-done', requestId: 'a' });
  });

  it('refuses pictures, of which nobody has seen anything, and with one of them the request', async () => {
    const { log, executor } = await open();
    executor.submit([request('bad', 'picture: forbidden: 1', { n: 3 }), request('a', 'apples', { n: 2 })]);
    expect(await log.end('bad')).toEqual({
      type: 'request-failed',
      requestId: 'bad',
      code: 'content_policy_violation',
      message: 'picture 1 is refused here: nobody may wish for that',
    });
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    expect([...log.outputs('bad').keys()]).not.toContain(1);
    expect(log.of('progress').filter(({ preview }) => preview !== undefined)).toEqual([]);
    const said = log.events.filter((event) => 'requestId' in event && event.requestId === 'bad');
    expect(said.at(-1)).toMatchObject({ type: 'request-failed' });
  });

  it.each([
    ['pixels', 'picture: shape', '16x16 pixels 768'],
    ['files, which other servers and modules give', 'file', '16x16 image/png 70'],
  ])('is shown %s', async (_what, prompt, reason) => {
    const { log, executor } = await open();
    executor.submit([request('a', prompt)]);
    expect(await log.end('a')).toMatchObject({ message: `picture 0 is refused here: ${reason}` });
  });

  it.each([
    ['throws', 'out of order'],
    ['nothing', 'it gave undefined, expected { allowed: true } or { allowed: false, reason: "…" }'],
    ['no reason', 'it gave { allowed: false }, expected { allowed: true } or { allowed: false, reason: "…" }'],
    ['truthy', 'it gave 1, expected { allowed: true } or { allowed: false, reason: "…" }'],
    ['dies', 'exited with code 3'],
    ['rejects', 'it ended: nobody caught it'],
  ])('that %s lets nothing pass, of prompts or pictures, and judges the next', async (way, cause) => {
    const { log, executor } = await open();
    executor.submit([request('prompt', way)]);
    const failure = { type: 'request-failed', code: 'unavailable', cause };
    expect(await log.end('prompt')).toEqual({ ...failure, requestId: 'prompt', message: noVerdict('the prompt') });
    executor.submit([request('picture', `picture: ${way}`)]);
    expect(await log.end('picture')).toEqual({ ...failure, requestId: 'picture', message: noVerdict('the picture') });
    expect(log.of('output')).toEqual([]);
    executor.submit([request('a', 'apples'), request('bad', 'forbidden')]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    expect(await log.end('bad')).toMatchObject({ code: 'content_policy_violation' });
  });

  // Who blocks is another process for the next, which takes longer to start than a verdict may take.
  it.each([
    ['hangs', 'mine'],
    ['blocks', 'late'],
  ])('that %s has so long and no longer, and judges the next', async (way, model) => {
    const { log, executor } = await open({ timeoutMs: 2000, model });
    executor.submit([request('bad', way)]);
    const cause = 'it gave no verdict in 2 s';
    expect(await log.end('bad')).toMatchObject({ type: 'request-failed', code: 'unavailable', cause });
    executor.submit([request('a', 'apples')]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });

  it('that has not decided yet is not waited for by who cancels', async () => {
    const { log, executor } = await open();
    executor.submit([request('prompt', 'hangs'), request('picture', 'picture: hangs'), request('a', 'apples')]);
    await log.end('a');
    executor.cancel('prompt');
    executor.cancel('picture');
    for (const id of ['prompt', 'picture'])
      expect(await log.end(id)).toEqual({ type: 'request-canceled', requestId: id });
  });

  it.each([
    ['./nowhere.mjs', 'mine', 'JUDGE is ./nowhere.mjs: expected the path of a module, and there is no such file'],
    [judge, 'unfit', `JUDGE is ${judge}: it cannot start: has no weights`],
    [painter, 'mine', `JUDGE is ${painter}: it cannot start: expected a module that exports a function createJudge`],
  ])('that cannot start keeps its worker from serving: %#', async (module, model, message) => {
    const { executor } = create({ module, model });
    await expect(executor.start()).rejects.toMatchObject({ message });
    expect(await executor.checkHealth()).toMatchObject({ isHealthy: false });
  });

  it('of prompts alone leaves previews and pictures as they are', async () => {
    const { log, executor } = await open({ module: fixture('./__fixtures__/prompts-only.mjs') });
    executor.submit([request('a', 'apples')]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    expect(log.of('progress').filter(({ preview }) => preview !== undefined)).toHaveLength(1);
  });

  it('has no say in texts', async () => {
    // It would not start.
    const { log, executor } = await open({ model: 'unfit', createExecutor: createWriter });
    executor.submit([{ id: 'a', input: { prompt: 'forbidden', slots: 1 } }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });
});

const directory = resolve(import.meta.dirname, '../../../../models/emoji-sd');
const size = { width: 64, height: 64, numInferenceSteps: 6, guidanceScale: 3, scheduler: 'dpmpp_2m' };

describeExecutor('of pictures, judged', {
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
