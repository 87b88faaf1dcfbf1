/** ComfyUI as an upstream: what the server receives, and what happens to prompts that others touch. */
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { decodeRgb } from '@darkroom/imaging';
import type { ImageCard, ImageInput } from '@darkroom/kinds';
import { expect, it, onTestFinished, vi } from 'vitest';
import { EventLog } from '../../conformance/event-log.ts';
import type { UpstreamExecutorOptions } from '../upstream-executor.ts';
import { ToyComfyui } from '../../testing/toy-comfyui.ts';
import type { ToyFault } from '../../testing/toy-server.ts';
import { toyPng } from '../../testing/toy-png.ts';
import { UpstreamExecutor } from '../upstream-executor.ts';
import { UpstreamHttp } from '../http/upstream-http.ts';
import { createComfyui } from './comfyui.ts';
import { StepCounter } from './step-counter.ts';

const workflowAt = (name: string): string => join(import.meta.dirname, `../../testing/workflows/${name}.json`);
const textToImage = workflowAt('text-to-image');
const inpaint = workflowAt('inpaint');

const input: ImageInput = {
  prompt: 'a fox at dawn',
  negativePrompt: 'no cats at all',
  width: 64,
  height: 96,
  n: 2,
  numInferenceSteps: 6,
  guidanceScale: 3,
  guidanceRescale: 0,
  seed: 7,
  scheduler: 'workflow',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 2,
};

async function open(workflow = textToImage, options: Partial<UpstreamExecutorOptions> = {}) {
  const toy = new ToyComfyui();
  const url = await toy.start();
  const log = new EventLog();
  const executor = new UpstreamExecutor({
    url,
    createProtocol: createComfyui({ workflow, pollMs: 1 }),
    model: 'toy',
    retryMs: 1,
    checkEveryMs: 600_000,
    onEvents: log.listener,
    ...options,
  });
  onTestFinished(async () => {
    await executor.shutdown();
    await toy.stop();
  });
  const card = (await executor.start()) as ImageCard;
  return { toy, url, log, executor, card };
}

/** Resolves once a prompt takes a step. */
function firstStep(toy: ToyComfyui): Promise<string> {
  return new Promise((resolve) => (toy.onStep = ({ id }) => resolve(id)));
}

it('describes the workflow by the values in it', async () => {
  const { card, executor } = await open();
  expect(card).toMatchObject({
    id: 'toy',
    sizes: { multiple: 8, min: 64, max: 2048, default: { width: 512, height: 512 } },
    steps: { min: 1, max: 100, default: 20 },
    guidance: { min: 0, max: 30, default: 7 },
    unsupported: ['guidance_rescale'],
  });
  expect(card.takes).toBeUndefined();
  expect(executor.maxSlots).toBe(1);
});

it('describes a workflow that needs files, and fields that it does not have', async () => {
  const { card } = await open(inpaint);
  expect(card).toMatchObject({
    takes: ['image', 'mask'],
    needs: ['image', 'mask'],
    unsupported: ['negative_prompt', 'guidance_rescale'],
    sizes: { min: 64, max: 1024, default: { width: 512, height: 512 } },
    steps: { min: 1, max: 50 },
  });
});

it('sends the workflow with the fields of the request, and reports each step once, previews and the image', async () => {
  const { toy, log, executor } = await open();
  executor.submit([{ id: 'a', input, indexes: [1] }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  const { prompt } = toy.bodies[0] as { prompt: Record<string, { inputs: object }> };
  expect(prompt).toMatchObject({
    '3': { inputs: { seed: 8, steps: 6, cfg: 3, denoise: 1, model: ['4', 0] } },
    '5': { inputs: { width: 64, height: 96 } },
    '6': { inputs: { text: 'a fox at dawn' } },
    '7': { inputs: { text: 'no cats at all' } },
  });
  const steps = log.of('progress').map(({ done, preview }) => [done, preview?.contentType]);
  const png = 'image/png';
  expect(steps).toEqual([[1], [2, png], [3], [4, png], [5], [6]].map(([done, type]) => [done, type]));
  const [{ output }] = log.of('output') as [ReturnType<typeof log.of<'output'>>[0]];
  expect(output.facts).toEqual({ width: 8, height: 8, seed: 8 });
  expect(output.contentType).toBe(png);
});

it('reports steps of a server that draws no previews', () => {
  const steps = new StepCounter({ ...input, previewEvery: 1 }, { countsSteps: () => true });
  const read = (value: number) => steps.read({ type: 'progress', node: '3', value, max: 6 });
  expect([1, 2, 3].map(read)).toEqual([undefined, 2, 3].map((done) => done && { type: 'progress', done, total: 6 }));
});

it('reports a step without its preview if that is larger than 2 KiB and a quarter of a byte per pixel', async () => {
  const steps = new StepCounter({ ...input, previewEvery: 1 }, { countsSteps: () => true });
  const max = 2048 + (64 * 96) / 4;
  const preview = async (value: number, bytes: number) => {
    steps.read({ type: 'progress', node: '3', value, max: 6 });
    const data = Buffer.concat([await toyPng('view')], bytes);
    return steps.read({ type: 'preview', data });
  };
  expect(await preview(1, max)).toMatchObject({ done: 1, preview: { contentType: 'image/png' } });
  expect(await preview(2, max + 1)).toEqual({ type: 'progress', done: 2, total: 6 });
});

it('removes the prompt from the image and from the history of the server', async () => {
  const { toy, log, executor } = await open();
  executor.submit([{ id: 'a', input, indexes: [0] }]);
  await log.end('a');
  const { data } = log.of('output')[0]!.output;
  expect(Buffer.from(toy.files[0]!.data).includes('a fox')).toBe(true);
  expect(Buffer.from(data).includes('a fox')).toBe(false);
  expect(await decodeRgb(data)).toEqual(await decodeRgb(toy.files[0]!.data));
  await executor.shutdown();
  expect(toy.history.size).toBe(0);
});

it('uploads the input image and the mask to the temporary directory', async () => {
  const { toy, log, executor } = await open(inpaint);
  const [image, mask] = [await toyPng('image'), await toyPng('mask')];
  const attachments = new Map([
    ['image', image],
    ['mask', mask],
  ]);
  executor.submit([
    { id: 'a', input: { ...input, image: true, mask: true, strength: 0.5 }, indexes: [0], attachments },
  ]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  const [first, second] = toy.files;
  expect([first, second].map((file) => ({ type: file!.type, data: Buffer.from(file!.data) }))).toEqual([
    { type: 'temp', data: image },
    { type: 'temp', data: mask },
  ]);
  expect(toy.bodies[2]).toMatchObject({
    prompt: {
      '3': { inputs: { denoise: 0.5 } },
      '10': { inputs: { image: `${first!.name} [temp]` } },
      '11': { inputs: { image: `${second!.name} [temp]` } },
    },
  });
});

it('interrupts a canceled prompt that runs, and no prompt of another client', async () => {
  const { toy, log, executor } = await open();
  const running = firstStep(toy);
  executor.submit([{ id: 'a', input: { ...input, prompt: 'forever' }, indexes: [0] }]);
  const id = await running;
  executor.cancel('a');
  await log.end('a');
  await executor.shutdown();
  await expect.poll(() => toy.running).toBeUndefined();
  expect(toy.interrupted).toEqual([id]);
});

it('removes a canceled prompt that waits from the queue, and does not interrupt the one that runs', async () => {
  const { toy, url, executor, log } = await open();
  const other = new EventLog();
  const options = { url, createProtocol: createComfyui({ workflow: textToImage }), model: 'toy' };
  const second = new UpstreamExecutor({ ...options, onEvents: other.listener });
  onTestFinished(() => second.shutdown());
  await second.start();
  const running = firstStep(toy);
  second.submit([{ id: 'running', input: { ...input, prompt: 'forever' }, indexes: [0] }]);
  await running;
  executor.submit([{ id: 'waiting', input, indexes: [0] }]);
  await expect.poll(() => toy.waiting).toHaveLength(1);
  executor.cancel('waiting');
  await log.end('waiting');
  await executor.shutdown();
  expect(toy.waiting).toEqual([]);
  expect(toy.interrupted).toEqual([]);
  expect(toy.running).toBeDefined();
});

it('cancels the prompts of a worker that stops before it has stopped', async () => {
  const { toy, executor } = await open();
  const running = firstStep(toy);
  executor.submit([{ id: 'a', input: { ...input, prompt: 'forever' }, indexes: [0] }]);
  await running;
  await executor.shutdown();
  await expect.poll(() => toy.interrupted).toHaveLength(1);
});

it('waits at most 5 s when it stops for a submission that the server does not answer, and never repeats it', async () => {
  const { toy, executor } = await open();
  let submissions = 0;
  const submitted = new Promise<void>((resolve) => {
    toy.fault = ({ method, url }) => {
      if (method !== 'POST' || url !== '/prompt') return false;
      submissions += 1;
      resolve();
      return true;
    };
  });
  executor.submit([{ id: 'a', input, indexes: [0] }]);
  await submitted;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let hasStopped = false;
  const stopped = executor.shutdown().then(() => (hasStopped = true));
  await vi.advanceTimersByTimeAsync(4999);
  expect(hasStopped).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await stopped;
  vi.useRealTimers();
  // Resolves once the call has ended.
  await executor.shutdown();
  expect(submissions).toBe(1);
});

it('loses a request whose node fails, without the prompt in its message or in the history', async () => {
  const { toy, log, executor, url } = await open();
  executor.submit([{ id: 'a', input: { ...input, prompt: 'boom, a secret wish' }, indexes: [0] }]);
  const end = await log.end('a');
  expect(end).toMatchObject({ type: 'request-lost' });
  expect(end).toMatchObject({ message: expect.stringMatching(`^${url} broke off: `) as string });
  expect(JSON.stringify(end)).not.toContain('secret wish');
  expect(toy.history.size).toBe(0);
});

it('loses a request whose prompt another client interrupts', async () => {
  const { toy, log, executor } = await open();
  const running = firstStep(toy);
  executor.submit([{ id: 'a', input: { ...input, prompt: 'forever' }, indexes: [0] }]);
  await running;
  toy.running!.isInterrupted = true;
  expect(await log.end('a')).toMatchObject({
    type: 'request-lost',
    message: expect.stringContaining('interrupted the prompt for another client') as string,
  });
});

it('loses a request whose prompt is no longer in the queue, found by polling', async () => {
  const { toy, log, executor } = await open();
  // The prompt waits behind this one, which never ends.
  toy.running = { id: 'other', client: 'other', graph: {}, isInterrupted: false };
  executor.submit([{ id: 'a', input, indexes: [0] }]);
  await expect.poll(() => toy.waiting).toHaveLength(1);
  toy.waiting.length = 0;
  expect(await log.end('a')).toMatchObject({
    type: 'request-lost',
    message: expect.stringContaining('no longer has the prompt') as string,
  });
});

/** A call of a server whose queue another prompt blocks, or runs silently. */
async function openCall(pollMs = 1) {
  const toy = new ToyComfyui();
  const http = new UpstreamHttp({ url: await toy.start() });
  const protocol = createComfyui({ workflow: textToImage, pollMs })({ http, model: 'toy' });
  const controller = new AbortController();
  const call = protocol.run({ input, index: 0 }, controller.signal);
  onTestFinished(async () => {
    controller.abort();
    await call.next().catch(() => {});
    await toy.stop();
  });
  /** Resolves once the queue has been polled so often. */
  const polled = (times: number) =>
    new Promise<void>((resolve) => {
      let polls = 0;
      toy.fault = ({ url }) => {
        if (url === '/queue' && ++polls === times) resolve();
        return false;
      };
    });
  return { toy, call, polled };
}

it('emits a liveness signal at each poll while the prompt waits behind others', async () => {
  const { toy, call } = await openCall();
  toy.running = { id: 'other', client: 'other', graph: {}, isInterrupted: false };
  for (let poll = 0; poll < 5; poll++) expect(await call.next()).toEqual({ done: false, value: undefined });
});

it('emits nothing while the prompt runs silently, so that its silence counts', async () => {
  const { toy, call, polled } = await openCall();
  let step: (() => void) | undefined;
  toy.onStep = () => new Promise<void>((resolve) => (step = resolve));
  // Its start, and that of a node.
  for (let message = 0; message < 2; message++) expect(await call.next()).toEqual({ done: false, value: undefined });
  const next = call.next();
  expect(await Promise.race([next, polled(5)])).toBeUndefined();
  step?.();
  expect(await next).toMatchObject({ value: { type: 'progress', done: 1 } });
});

it('polls while the server sends messages about other prompts only', async () => {
  const { toy, call, polled } = await openCall(100);
  const status = JSON.stringify({ type: 'progress', data: { prompt_id: 'other', node: '3', value: 1, max: 6 } });
  const flood = new AbortController();
  onTestFinished(() => flood.abort());
  toy.onStep = async ({ socket }) => {
    while (!flood.signal.aborted) {
      socket?.send(status);
      await setImmediate();
    }
  };
  const polls = polled(3);
  // Its start, and that of a node.
  for (let message = 0; message < 2; message++) expect(await call.next()).toEqual({ done: false, value: undefined });
  const next = call.next();
  await polls;
  flood.abort();
  expect(await next).toMatchObject({ value: { type: 'progress', done: 1 } });
});

it('loses all requests if the server goes away while it draws, and draws them after it is back', async () => {
  const { toy, log, executor } = await open();
  const running = firstStep(toy);
  executor.submit([{ id: 'a', input: { ...input, prompt: 'forever' }, indexes: [0] }]);
  await running;
  await toy.stop();
  expect(await log.next(({ type }) => type === 'engine-lost')).toMatchObject({ requestIds: ['a'] });
  await toy.start();
  await executor.start();
  executor.submit([{ id: 'b', input, indexes: [0] }]);
  expect(await log.end('b')).toMatchObject({ type: 'request-done' });
});

it('names a node type that the server does not have', async () => {
  const toy = new ToyComfyui();
  toy.fault = ({ url }, response) => url === '/object_info/KSampler' && Boolean(response.end('{}'));
  const url = await toy.start();
  onTestFinished(() => toy.stop().then(() => {}));
  const createProtocol = createComfyui({ workflow: textToImage });
  const executor = new UpstreamExecutor({ url, createProtocol, model: 'toy', onEvents: () => {} });
  await expect(executor.start()).rejects.toMatchObject({
    code: 'model_unsupported',
    message: `${url} has no node type KSampler, expected all of the workflow's`,
  });
});

it('blames the workflow, not the request, for a value of the workflow that the server rejects', async () => {
  const { toy, log, executor, url } = await open();
  toy.fault = ({ url: path }, response) => {
    if (path !== '/prompt') return false;
    const errors = [{ message: 'Value not in list', details: "ckpt_name: 'model.safetensors' not in []" }];
    const extra_info = { input_name: 'ckpt_name' };
    const node_errors = { '4': { errors: errors.map((error) => ({ ...error, extra_info })) } };
    response.writeHead(400, { 'Content-Type': 'application/json' });
    return Boolean(
      response.end(JSON.stringify({ error: { message: 'Prompt outputs failed validation' }, node_errors })),
    );
  };
  executor.submit([{ id: 'a', input, indexes: [0] }]);
  expect(await log.next(({ type }) => type === 'engine-lost')).toMatchObject({
    countsNoAttempt: true,
    message: `${url} rejects the workflow: 4.ckpt_name: Value not in list: ckpt_name: 'model.safetensors' not in []`,
  });
});

/** Answers one route: `GET /view`, for example. */
const answering =
  (route: string, status: number, body = '<html>'): ToyFault =>
  ({ method, url = '' }, response) =>
    `${method} ${url}`.startsWith(route) && Boolean(response.writeHead(status, { 'Retry-After': '0' }).end(body));

it.each<[string, ToyFault, { type: string; message: string }]>([
  ['no file', answering('GET /view', 404), { type: 'request-lost', message: "no longer has the prompt's image" }],
  ['no history', answering('GET /history', 404), { type: 'request-lost', message: 'no longer has the prompt' }],
  ['a page as history', answering('GET /history', 200), { type: 'request-lost', message: 'that is not JSON' }],
  ['a page as queue', answering('GET /queue', 200), { type: 'request-lost', message: 'that is not JSON' }],
  ['a timeout', answering('POST /prompt', 408, '{}'), { type: 'request-lost', message: 'POST /prompt with 408' }],
  ['too many', answering('POST /prompt', 429, '{}'), { type: 'request-lost', message: 'POST /prompt with 429' }],
  ['too large', answering('POST /prompt', 413), { type: 'request-failed', message: 'refused the request' }],
])('ends only the request for which the server answers: %s', async (name, fault, { type, message }) => {
  const { toy, log, executor } = await open();
  // The prompt waits behind this one, so that the queue is polled.
  if (name === 'a page as queue') toy.running = { id: 'other', client: 'other', graph: {}, isInterrupted: false };
  toy.fault = fault;
  executor.submit([{ id: 'a', input, indexes: [0] }]);
  const event = await log.next(({ type }) => ['engine-lost', 'request-lost', 'request-failed'].includes(type));
  expect(event).toMatchObject({ type, message: expect.stringContaining(message) as string });
});
