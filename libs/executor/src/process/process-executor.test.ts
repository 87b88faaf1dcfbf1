/** Tests the engine in its own process, which runs built code: `npm run build` first. */
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { ModelCard, PipelineComponent } from '@darkroom/core';
import { encodeImage } from '@darkroom/imaging';
import { imageInput } from '@darkroom/testing';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { ProcessExecutor } from './process-executor.ts';

const directory = resolve(import.meta.dirname, '../../../../models/emoji-sd');
const maxSlots = 3;

/** Runs long enough to be still running when a test acts on its first steps. */
const large = { width: 256, height: 256, n: 2, numInferenceSteps: 200 };

function request(id: string, changes: Record<string, unknown> = {}) {
  const size = { width: 64, height: 64, numInferenceSteps: 6, guidanceScale: 3 };
  const input = {
    ...imageInput,
    ...size,
    prompt: 'a cat on a blue background',
    scheduler: 'dpmpp_2m',
    previewEvery: 0,
  };
  return { id, input: { ...input, seed: 1, ...changes } };
}

async function redPng(red: number): Promise<Uint8Array> {
  const data = Uint8Array.from({ length: 64 * 64 * 3 }, (_, at) => (at % 3 === 0 ? red : 0));
  const options = { outputFormat: 'png', outputCompression: 100 } as const;
  return (await encodeImage({ data, facts: { width: 64, height: 64 } }, options)).data;
}

const model = { directory, threads: 1 };

describe('a running engine', () => {
  // Tests share it; those that end it come last.
  const log = new EventLog();
  const executor = new ProcessExecutor({ maxSlots, onEvents: log.listener, model });
  afterAll(() => executor.shutdown());
  beforeEach(async () => {
    log.events = [];
    if (executor.enginePid === undefined) await executor.start();
  });

  it('does not block the event loop of its own process', async () => {
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 5);
    executor.submit([request('a', { numInferenceSteps: 40, width: 128, height: 128, n: 3 })]);
    await log.end('a');
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(40);
  });

  it('passes on the attachments of a request', async () => {
    // A red image and a black mask: no part is repainted.
    const attachments = new Map(Object.entries({ image: await redPng(255), mask: await redPng(0) }));
    executor.submit([{ ...request('a', { image: true, mask: true, strength: 1 }), attachments }]);
    await log.end('a');
    const [red, green] = [0, 1].map((color) =>
      log
        .outputs('a')
        .get(0)!
        .filter((_, at) => at % 3 === color),
    );
    expect(Math.min(...red!)).toBeGreaterThan(150);
    expect(Math.max(...green!)).toBeLessThan(110);
  });

  it('reports engine-lost with the open requests when the engine dies, and restarts', async () => {
    executor.submit([request('a', large), request('b', { numInferenceSteps: 1 })]);
    await log.end('b');
    process.kill(executor.enginePid!, 'SIGKILL');
    const lost = await log.next(({ type }) => type === 'engine-lost');
    expect(lost).toEqual({ type: 'engine-lost', message: 'the engine was killed by SIGKILL', requestIds: ['a'] });
    await executor.start();
    executor.submit([request('a', { numInferenceSteps: 1 })]);
    await log.end('a');
  });

  it('kills a hung engine and reports engine-lost', async () => {
    executor.submit([request('a', large)]);
    process.kill(executor.enginePid!, 'SIGSTOP');
    executor.kill();
    expect(await log.next(({ type }) => type === 'engine-lost')).toMatchObject({ requestIds: ['a'] });
  });
});

describe('the process executor', () => {
  it('rejects start() with the reason a model cannot load, and can retry at once', async () => {
    const log = new EventLog();
    const executor = new ProcessExecutor({ maxSlots, onEvents: log.listener, model: { directory: '/nowhere/model' } });
    for (const attempt of [1, 2]) {
      await expect(executor.start(), `attempt ${attempt}`).rejects.toMatchObject({
        code: 'model_unsupported',
        message: 'model_index.json: is missing',
      });
    }
    expect(log.events).toEqual([]);
  });

  it('reports the device of each model component', async () => {
    const onLoaded = vi.fn<(components: readonly PipelineComponent[], card: ModelCard) => void>();
    const devices = ['cuda', 'cpu'] as const;
    const options = { maxSlots, onEvents: () => {}, onLoaded, model: { ...model, devices } };
    const executor = new ProcessExecutor(options);
    const card = await executor.start();
    const refusals = [{ device: 'cuda', reason: expect.stringContaining('shared library') as string }];
    const folders = ['text_encoder', 'unet', 'vae_decoder', 'upscaler_x2', 'vae_encoder'];
    const parts = folders.map((part) => ({ part, device: 'cpu', refusals }));
    expect(onLoaded.mock.calls).toEqual([[parts, card]]);
    await executor.shutdown();
  });

  it('leaves no engine process behind when its own process is killed', async () => {
    const built = resolve(import.meta.dirname, '../../dist/index.js');
    const script = `
      const { ProcessExecutor } = await import(${JSON.stringify(built)});
      const executor = new ProcessExecutor({
        model: ${JSON.stringify(model)}, maxSlots: 3,
        onEvents: () => { process.stdout.write(String(executor.enginePid), () => process.kill(process.pid, 'SIGKILL')); },
      });
      await executor.start();
      executor.submit([${JSON.stringify(request('a', { numInferenceSteps: 200 }))}]);`;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    const { signal, stdout } = await run.then(
      () => expect.unreachable('the process must have been killed'),
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
