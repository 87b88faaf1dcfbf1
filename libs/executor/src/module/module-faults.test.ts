/** Tests modules that cannot start, or violate the contract. They run built code: `npm run build` first. */
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { EventLog } from '../conformance/event-log.ts';
import { ModuleExecutor, type ModuleExecutorOptions } from './module-executor.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`./__fixtures__/${name}.mjs`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'darkroom-module-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function fileOf(source: string): string {
  const file = join(folder, `module-${files++}.mjs`);
  writeFileSync(file, source);
  return file;
}

function open(module: string, options: Partial<ModuleExecutorOptions> = {}) {
  const log = new EventLog();
  const executor = new ModuleExecutor({
    module,
    model: 'mine',
    onEvents: log.listener,
    checkEveryMs: 600_000,
    ...options,
  });
  onTestFinished(() => executor.shutdown());
  return { log, executor };
}

const text = (prompt: string, changes: object = {}) => ({
  params: { prompt },
  n: 1,
  seed: 1,
  maxTokens: 5,
  ...changes,
});

describe('a start', () => {
  const card = `card: { kind: 'text' }`;
  it.each<[string, string, string | RegExp, string]>([
    [
      'wrong syntax',
      'export function (',
      /^it could not be loaded: .*Unexpected token|Function statements/,
      'internal',
    ],
    [
      'a package that is not there',
      `import 'nowhere-at-all';`,
      /^it could not be loaded: Cannot find package 'nowhere-at-all'/,
      'internal',
    ],
    [
      'no createExecutor',
      'export default () => {};',
      'expected a module that exports a function createExecutor',
      'model_unsupported',
    ],
    [
      'a createExecutor that throws',
      `export function createExecutor() { throw new Error('no such file'); }`,
      'createExecutor threw: no such file',
      'internal',
    ],
    ['one that throws at load', `throw new Error('no licence');`, 'it could not be loaded: no licence', 'internal'],
    ['one that exits', 'process.exit(4);', 'it exited before createExecutor finished: exited with code 4', 'internal'],
    [
      'one that gives nothing',
      'export const createExecutor = () => undefined;',
      'createExecutor returned no function run, expected { card, slots, run }',
      'model_unsupported',
    ],
    [
      'no card',
      'export const createExecutor = () => ({ run() {} });',
      'card is undefined, expected an object with kind',
      'model_unsupported',
    ],
    [
      'another kind',
      `export const createExecutor = () => ({ run() {}, card: { kind: 'music' } });`,
      'card.kind is "music", expected "text" or "image"',
      'model_unsupported',
    ],
    [
      'another id',
      `export const createExecutor = () => ({ run() {}, card: { kind: 'text', id: 'yours' } });`,
      'card.id is "yours", expected mine, as it is served: leave it out, or set MODEL_ID to it',
      'model_unsupported',
    ],
    [
      'a field that is none',
      `export const createExecutor = () => ({ run() {}, card: { kind: 'text', maxTokens: 5 } });`,
      'card.maxTokens is 5, expected no such field of a text: there are kind, id, ownedBy, maxModelTokens, takesMessages, takesImages',
      'model_unsupported',
    ],
    [
      'no room',
      `export const createExecutor = () => ({ run() {}, ${card}, slots: 0.5 });`,
      'slots is 0.5, expected a whole number from 1 to 4096',
      'model_unsupported',
    ],
    [
      'steps in no order',
      `export const createExecutor = () => ({ run() {}, card: { kind: 'image', steps: { min: 4, max: 2, default: 3 } } });`,
      'card.steps is { min: 4, max: 2, default: 3 }, expected { min, max, default } with whole numbers from 1 to 1000 and default between min and max',
      'model_unsupported',
    ],
    [
      'a card that cannot be sent',
      `export const createExecutor = () => ({ run() {}, card: { kind: () => {} } });`,
      /^createExecutor returned a card that cannot be read: .*could not be cloned/,
      'internal',
    ],
  ])('fails with one line that names the setting: %s', async (_name, source, message, code) => {
    const module = fileOf(source);
    const { executor, log } = open(module);
    const error = (await executor.start().then(String, (failed: unknown) => failed)) as {
      message: string;
      code: string;
    };
    // An error that clients may see must not contain the module's path.
    const beginning = `EXECUTOR is ${code === 'internal' ? module : `…/${basename(module)}`}: `;
    expect(error.message).toContain(beginning);
    expect(error.message.slice(beginning.length)).toMatch(message);
    expect(error.code).toBe(code);
    expect(error.message).not.toContain('\n');
    expect(log.events).toEqual([]);
  });

  it('loads a package by name', async () => {
    const installed = fileURLToPath(new URL('../../../../node_modules/', import.meta.url));
    const place = mkdtempSync(join(installed, 'darkroom-test-executor-'));
    onTestFinished(() => rmSync(place, { recursive: true }));
    writeFileSync(join(place, 'package.json'), '{ "type": "module", "exports": "./mine.js" }');
    writeFileSync(join(place, 'mine.js'), `export const createExecutor = () => ({ run() {}, ${card} });`);
    const { executor } = open(basename(place));
    expect(await executor.start()).toMatchObject({ id: 'mine', kind: 'text' });
  });

  it('rejects a package without createExecutor', async () => {
    const { executor } = open('zod');
    await expect(executor.start()).rejects.toThrow(
      'EXECUTOR is zod: expected a module that exports a function createExecutor',
    );
  });

  it('rejects a path without a file', async () => {
    const { executor } = open('./nowhere.mjs');
    await expect(executor.start()).rejects.toThrow(
      'EXECUTOR is ./nowhere.mjs: expected the path of a module, and there is no such file',
    );
  });

  it.each([
    ['takes too long', 'export const createExecutor = () => new Promise(() => {});'],
    ['never yields to the event loop', 'export const createExecutor = () => { for (;;); };'],
  ])('times out and can be retried if createExecutor %s', async (_name, source) => {
    const { executor } = open(fileOf(source), { timeoutMs: 50 });
    for (const attempt of [1, 2]) {
      const starting = executor.start();
      starting.catch(() => {});
      // On Node 20, garbage collection drops timeout signals that nothing references.
      await expect.poll(() => executor.enginePid).toBeDefined();
      collectGarbage();
      await expect(starting, `attempt ${attempt}`).rejects.toThrow(
        'createExecutor did not finish within ten times ENGINE_TIMEOUT_S',
      );
    }
    await expect.poll(() => executor.enginePid).toBeUndefined();
  });

  it('rejects when the executor is shut down meanwhile', async () => {
    const { executor } = open(fileOf('export const createExecutor = () => new Promise(() => {});'));
    const starting = executor.start();
    starting.catch(() => {});
    await expect.poll(() => executor.enginePid).toBeDefined();
    await executor.shutdown();
    await expect(starting).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching('was stopped') as string,
    });
    expect(executor.enginePid).toBeUndefined();
  });
});

describe('a text', () => {
  const writer = fixture('writer');

  it.each<[string, string]>([
    ['throw at once', 'threw: thrown at once'],
    ['throw later', 'threw: thrown later'],
    ['throw nothing', 'threw: undefined'],
    ['throw with a cause', 'threw: no step: no device: layer 7'],
    ['throw an object', "threw: { code: 11, detail: 'layer 7' }"],
    ['the channel', 'threw: process.send is not a function'],
    ['no iterator', 'broke its contract: run returned 7, expected nothing, or { finishReason'],
    ['a number', 'broke its contract: run yielded 5, expected text, or { text, tokens }'],
    [
      'a wrong type',
      'broke its contract: run yielded { type: text of 5 characters, text: text of 1 characters }, expected text, or',
    ],
    [
      'tokens that are NaN',
      'broke its contract: run yielded { text: text of 1 characters, tokens: NaN }, expected text, or',
    ],
    [
      'half a character',
      'broke its contract: run yielded text of 1 characters, expected text that does not end within a character',
    ],
    ['what cannot be sent', "threw: () => 'x' could not be cloned"],
    ['100 MB', 'threw: it sent a value of 100000007 bytes, expected at most 1048576'],
    ['too long a text', 'broke its contract: run wrote a text of 5000, expected at most 1104 bytes for 5 tokens'],
    ['a wrong end', 'broke its contract: run returned { finishReason: text of 5 characters }, expected nothing, or'],
  ])('loses the request and continues others on a fault: %s', async (fault, why) => {
    const { log, executor } = open(writer);
    await executor.start();
    executor.submit([
      { id: 'a', input: text('wish', { maxTokens: 200 }) },
      { id: 'bad', input: text(fault) },
      { id: 'b', input: text('wish', { n: 2 }) },
    ]);
    const end = await log.end('bad');
    expect(end).toMatchObject({ type: 'request-lost', requestId: 'bad' });
    expect((end as { message: string }).message).toContain(`${writer} ${why}`);
    await Promise.all(['a', 'b'].map((id) => log.end(id)));
    expect(new Set(log.of('request-done').map(({ requestId }) => requestId))).toEqual(new Set(['a', 'b']));
    expect(log.of('engine-lost')).toEqual([]);
  });

  it.each<[string, string | RegExp]>([
    ['exit', 'exited with code 3'],
    ['an unhandled rejection', 'exited with code 1: nobody caught this'],
    ['a word with the parent', 'was killed by SIGKILL: it sent a message for a call that has ended or never existed'],
    ['a word of another shape', 'was killed by SIGKILL: it sent an unexpected message'],
  ])('loses the engine on a fault and restarts it: %s', async (fault, how) => {
    const { log, executor } = open(writer);
    await executor.start();
    executor.submit([{ id: 'a', input: text('wish', { maxTokens: 100_000 }) }]);
    await log.firstProgress('a');
    executor.submit([{ id: 'bad', input: text(fault) }]);
    const lost = await log.next(({ type }) => type === 'engine-lost');
    expect(lost).toEqual({ type: 'engine-lost', message: `${writer} ${String(how)}`, requestIds: ['a', 'bad'] });
    expect(log.events.at(-1)).toBe(lost);
    await executor.start();
    executor.submit([{ id: 'a', input: text('wish') }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });

  it('kills the process of a call in an infinite loop', async () => {
    const { log, executor } = open(writer, { timeoutMs: 200 });
    await executor.start();
    executor.submit([{ id: 'bad', input: text('an infinite loop') }]);
    const lost = await log.next(({ type }) => type === 'engine-lost');
    const message = `${writer} was killed by SIGKILL: it continued after its signal was aborted`;
    expect(lost).toMatchObject({ message, requestIds: ['bad'] });
    await executor.start();
    executor.submit([{ id: 'a', input: text('wish') }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });

  it('detects an infinite loop before the first output by the health check', async () => {
    const { log, executor } = open(
      fileOf(`export const createExecutor = () => ({
          card: { kind: 'text' },
          async *run() {
            for (;;);
          },
        });`),
      { checkEveryMs: 10, timeoutMs: 200 },
    );
    await executor.start();
    executor.submit([{ id: 'bad', input: text('wish') }]);
    const lost = await log.next(({ type }) => type === 'engine-lost');
    const message = expect.stringMatching(/ does not answer$/) as string;
    expect(lost).toMatchObject({ message, requestIds: ['bad'] });
  });

  it('loses a silent request alone, and kills the process if the call does not end after that', async () => {
    const { log, executor } = open(writer, { timeoutMs: 300 });
    await executor.start();
    executor.submit([{ id: 'bad', input: text('silence') }]);
    expect(await log.end('bad')).toMatchObject({
      type: 'request-lost',
      message: `${writer} sent nothing for an output within 0.3 s`,
    });
    // The silent call still takes one slot, so two are free.
    executor.submit([{ id: 'a', input: text('wish', { n: 3 }) }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    const lost = await log.next(({ type }) => type === 'engine-lost' || type === 'request-lost');
    expect(lost).toMatchObject({ requestId: 'bad' });
    await expect.poll(() => executor.enginePid).toBeUndefined();
    expect(await executor.checkHealth()).toMatchObject({ isHealthy: false });
  });

  it('limits the rate of a call that floods, and can cancel it', async () => {
    const { log, executor } = open(writer);
    await executor.start();
    const startedAtMs = performance.now();
    executor.submit([
      { id: 'flood', input: text('a flood of nothing', { maxTokens: 2000 }) },
      { id: 'a', input: text('wish', { maxTokens: 50 }) },
    ]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    await expect.poll(() => log.of('delta', 'flood').length).toBeGreaterThan(3000);
    executor.cancel('flood');
    const deltaCount = log.of('delta', 'flood').length;
    // The limit is 50 per 10 ms; add the current and the first interval.
    expect(deltaCount).toBeLessThan(50 * ((performance.now() - startedAtMs) / 10 + 2));
    executor.submit([{ id: 'b', input: text('wish') }]);
    expect(await log.end('b')).toMatchObject({ type: 'request-done' });
    expect(log.of('delta', 'flood')).toHaveLength(deltaCount);
  });

  it('frees the slot of a canceled request for the next', async () => {
    const { log, executor } = open(writer);
    await executor.start();
    const long = text('wish', { maxTokens: 100_000 });
    executor.submit(['a', 'b', 'c'].map((id) => ({ id, input: long })));
    executor.submit([{ id: 'next', input: text('wish') }]);
    await Promise.all(['a', 'b', 'c'].map((id) => log.firstProgress(id)));
    expect(log.of('delta', 'next')).toEqual([]);
    executor.cancel('a');
    expect(await log.end('next')).toMatchObject({ type: 'request-done' });
    expect(log.of('request-done').map(({ requestId }) => requestId)).toEqual(['next']);
  });

  it('aborts a call whose value cannot be serialized, before its slot is reused', async () => {
    const { log, executor } = open(
      fileOf(`let ended = 0;
        export const createExecutor = () => ({
          card: { kind: 'text' },
          async *run({ input: { params } }, signal) {
            if (params.prompt === 'count') return yield String(ended);
            try {
              yield { text: () => 'x' };
            } finally {
              ended += signal.aborted ? 1 : 100;
            }
          },
        });`),
    );
    await executor.start();
    executor.submit([{ id: 'a', input: text('untold') }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-lost' });
    executor.submit([{ id: 'b', input: text('count') }]);
    await log.end('b');
    expect(log.of('delta').map(({ text: piece }) => piece)).toEqual(['1']);
  });

  it('starts no other output of a request after one fails', async () => {
    const { log, executor } = open(
      fileOf(`const begun = [];
        export const createExecutor = () => ({
          card: { kind: 'text' },
          slots: 2,
          async *run({ index, input: { params } }, signal) {
            if (params.prompt === 'which?') return yield begun.join(' ');
            begun.push(index);
            yield 'x';
            if (index === 0) throw new Error('no');
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
          },
        });`),
    );
    await executor.start();
    executor.submit([{ id: 'a', input: text('', { n: 4 }) }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-lost' });
    executor.submit([{ id: 'b', input: text('which?') }]);
    await log.end('b');
    expect(log.of('delta', 'b').map(({ text: piece }) => piece)).toEqual(['0 1']);
  });

  it('never starts a request canceled while waiting, and frees a slot only when its call has ended', async () => {
    const { log, executor } = open(
      fileOf(`const begun = [];
        export const createExecutor = () => ({
          card: { kind: 'text' },
          async *run({ input: { params } }, signal) {
            begun.push(params.prompt);
            yield begun.join(' ');
            if (params.prompt === 'deaf') await new Promise((resolve) => signal.addEventListener('abort', () => setTimeout(resolve, 100)));
            begun.push('end');
          },
        });`),
    );
    await executor.start();
    executor.submit(['deaf', 'never', 'last'].map((id) => ({ id, input: text(id) })));
    await log.firstProgress('deaf');
    executor.cancel('deaf');
    executor.cancel('never');
    expect(await executor.checkHealth()).toMatchObject({ slots: 1, waitingRequests: 1 });
    expect(await log.end('last')).toMatchObject({ type: 'request-done' });
    expect(log.of('delta', 'last').map(({ text: piece }) => piece)).toEqual(['deaf end last']);
  });

  it('reports text, progress and usage', async () => {
    const { log, executor } = open(writer);
    await executor.start();
    executor.submit([
      { id: 'a', input: text('wish', { params: { prompt: 'wish', max_tokens: 2 }, maxTokens: 2, n: 2 }), indexes: [1] },
    ]);
    await log.end('a');
    expect(log.of('delta').map(({ text }) => text)).toEqual(['wishé🦊2/1 ', 'ishé🦊2/1 ']);
    // Progress within the next 50 ms is not reported: the end reports it.
    expect(log.of('progress')[0]).toMatchObject({ done: 1, total: 2 });
    expect(log.of('output')[0]!.output).toMatchObject({
      contentType: 'text/plain; charset=utf-8',
      facts: { finish_reason: 'length', prompt_tokens: 4, completion_tokens: 2 },
    });
  });
});
