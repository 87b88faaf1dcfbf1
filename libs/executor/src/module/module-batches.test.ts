/** Tests modules that compute several outputs in one call. They run built code: `npm run build` first. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { ModuleExecutor } from './module-executor.ts';

const module = fileURLToPath(new URL('./__fixtures__/batcher.mjs', import.meta.url));
const write = (prompt: string, n = 1) => ({ id: prompt, input: { params: { prompt }, n, seed: 1, maxTokens: 5 } });

describe('a module with runBatch', () => {
  const log = new EventLog();
  const executor = new ModuleExecutor({ module, model: 'mine', onEvents: log.listener });
  beforeAll(() => executor.start());
  afterAll(() => executor.shutdown());
  beforeEach(() => {
    log.events = [];
  });

  it('gets the requests that wait in one call', async () => {
    executor.submit([write('size', 4)]);
    await log.end('size');
    // The first call may begin before the others have arrived; these share the next one.
    const sizes = [...log.outputs('size').values()].map(Number);
    expect(Math.max(...sizes)).toBeGreaterThan(1);
  });

  it('yields the text of a result, and returns the rest', async () => {
    executor.submit([write('other')]);
    await log.end('other');
    expect(log.of('output', 'other')[0]!.output).toMatchObject({
      data: new TextEncoder().encode('other 1/0'),
      facts: { finish_reason: 'length', prompt_tokens: 2 },
    });
  });

  it('fails one request of a call', async () => {
    executor.submit([write('nonsense'), write('other')]);
    expect(await log.end('nonsense')).toMatchObject({ type: 'request-failed', message: 'prompt: makes no sense' });
    expect(await log.end('other')).toMatchObject({ type: 'request-done' });
  });

  it.each([
    ['throw', /threw: the batch failed/],
    ['too few', /threw: runBatch returned a list of 0, expected a list of [12]$/],
  ])('loses the requests of a failed call: %s', async (fault, message) => {
    executor.submit([write(fault, 2)]);
    expect(await log.end(fault)).toMatchObject({
      type: 'request-lost',
      message: expect.stringMatching(message) as string,
    });
  });

  it('ends a canceled request at once, and continues the others of its call', async () => {
    executor.submit([write('canceled'), write('other')]);
    executor.cancel('canceled');
    expect(await log.end('other')).toMatchObject({ type: 'request-done' });
    expect(log.of('output', 'canceled')).toEqual([]);
  });
});

it('kills the process of a batch that hangs after its last call was aborted', async () => {
  const log = new EventLog();
  const executor = new ModuleExecutor({ module, model: 'mine', onEvents: log.listener, timeoutMs: 200 });
  onTestFinished(() => executor.shutdown());
  await executor.start();
  executor.submit([write('hang', 2)]);
  const lost = await log.next(({ type }) => type === 'engine-lost');
  expect(lost).toMatchObject({
    message: `${module} was killed by SIGKILL: it continued after its signal was aborted`,
  });
  await executor.start();
  executor.submit([write('other')]);
  expect(await log.end('other')).toMatchObject({ type: 'request-done' });
});
