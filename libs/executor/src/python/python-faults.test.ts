/** Tests engines in Python that cannot start, violate the contract, or crash. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { PythonExecutor, type PythonExecutorOptions } from './python-executor.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`./__fixtures__/${name}.py`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'darkroom-python-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

function fileOf(source: string): string {
  const file = join(folder, `engine_${files++}.py`);
  writeFileSync(file, source);
  return file;
}

function open(module: string, options: Partial<PythonExecutorOptions> = {}) {
  const log = new EventLog();
  const executor = new PythonExecutor({
    module,
    model: 'mine',
    python: 'python3',
    checkEveryMs: 600_000,
    onEvents: log.listener,
    ...options,
  });
  onTestFinished(() => executor.shutdown());
  return { log, executor };
}

async function started(module: string, options: Partial<PythonExecutorOptions> = {}) {
  const opened = open(fixture(module), options);
  await opened.executor.start();
  return opened;
}

const text = (prompt: string, changes: object = {}) => ({
  params: { prompt },
  n: 1,
  seed: 1,
  maxTokens: 5,
  ...changes,
});
const image = (prompt: string) => ({
  prompt,
  width: 16,
  height: 16,
  n: 1,
  numInferenceSteps: 3,
  seed: 1,
  previewEvery: 0,
});
const write = (prompt: string, changes: object = {}) => ({ id: prompt, input: text(prompt, changes) });
const long = write('a long text', { maxTokens: 4096 });

const engine = (card: string, rest = '') =>
  `from darkroom_engine import Engine\nclass Mine(Engine):\n    card = ${card}\n${rest}\ncreate_engine = lambda model: Mine()\n`;

describe('a start', () => {
  it.each<[string, string, string | RegExp, string]>([
    ['wrong syntax', 'def (', /^it could not be loaded: SyntaxError/, 'internal'],
    [
      'packages that are not installed',
      'import json\nimport no_such_torch.nn\nfrom no_such_diffusers import Pipeline\n',
      /^it needs packages that PYTHON \(\S+\) does not have: no_such_torch, no_such_diffusers: ModuleNotFoundError/,
      'internal',
    ],
    [
      'a package that is needed later',
      'def create_engine(model):\n    import no_such_torch\n',
      /^it needs packages that PYTHON \(\S+\) does not have: no_such_torch/,
      'internal',
    ],
    ['no create_engine', 'x = 1', 'expected a module with a function create_engine(model)', 'model_unsupported'],
    [
      'a create_engine that raises',
      'def create_engine(model):\n    raise OSError("no such weights")\n',
      'create_engine raised an error: OSError: no such weights',
      'internal',
    ],
    [
      'one that exits',
      'import os\nos._exit(4)',
      'it exited before create_engine finished: exited with code 4',
      'internal',
    ],
    ['one that calls sys.exit', 'import sys\nsys.exit(4)', /^it could not be loaded: SystemExit: 4/, 'internal'],
    [
      'one that returns nothing',
      'def create_engine(model):\n    pass\n',
      'create_engine returned a NoneType, expected an Engine or a RunEngine',
      'model_unsupported',
    ],
    [
      'no card',
      'from darkroom_engine import Engine\ncreate_engine = lambda model: Engine()\n',
      'the engine has no card',
      'model_unsupported',
    ],
    [
      'another kind',
      engine('{"kind": "music"}'),
      'card.kind is "music", expected "text" or "image"',
      'model_unsupported',
    ],
    [
      'too many slots',
      engine('{"kind": "text"}', '    slots = 5000'),
      'slots is 5000, expected a whole number from 1 to 4096',
      'model_unsupported',
    ],
    [
      'a card that cannot be sent',
      engine('{"kind": object()}'),
      /^create_engine returned a card that cannot be sent: TypeError/,
      'internal',
    ],
  ])('fails with one line that names the setting: %s', async (_name, source, message, code) => {
    const module = fileOf(source);
    const { executor, log } = open(module);
    const error = (await executor.start().then(String, (failed: unknown) => failed)) as {
      message: string;
      code: string;
    };
    const beginning = `MODULE is ${code === 'internal' ? module : `…/${basename(module)}`}: `;
    expect(error.message).toContain(beginning);
    expect(error.message.slice(beginning.length)).toMatch(message);
    expect(error.code).toBe(code);
    expect(log.events).toEqual([]);
  });

  it.each([
    ['a program that does not exist', '/nowhere/python', 'ENOENT'],
    ['a program that is no Python', 'true', 'it has version 0.0'],
  ])('names PYTHON: %s', async (_name, python, reason) => {
    const { executor } = open(fixture('writer'), { python });
    await expect(executor.start()).rejects.toMatchObject({
      message: expect.stringMatching(
        new RegExp(`^PYTHON is ${python}, expected a Python of version 3.9 or later: .*${reason}`),
      ) as string,
    });
  });

  it('kills an engine whose start takes too long, and can start again', async () => {
    const { executor } = open(fileOf('import time\ntime.sleep(1000)\n'), { timeoutMs: 20 });
    for (const attempt of [1, 2]) {
      await expect(executor.start(), `attempt ${attempt}`).rejects.toMatchObject({
        message: expect.stringContaining('create_engine did not finish within ten times ENGINE_TIMEOUT_S') as string,
      });
    }
  });

  it('can be stopped', async () => {
    const { executor } = open(fileOf('import time\ntime.sleep(1000)\n'));
    const starting = executor.start();
    await expect.poll(() => executor.enginePid).toBeDefined();
    await executor.shutdown();
    await expect(starting).rejects.toMatchObject({ code: 'unavailable' });
  });
});

describe('a fault of one row', () => {
  it.each([
    ['raise', /raised ZeroDivisionError: division by zero/, /1 \/ 0/],
    ['a connection', /raised ConnectionRefusedError/, /create_connection/],
    ['a number', /broke its contract: run yielded \{ text: 5, tokens: 1 \}, expected text/, /./],
    ['half a character', /broke its contract: .*does not end within a character/, /./],
    ['too long a text', /broke its contract: run wrote a text of \d+/, /./],
    ['a step', /broke its contract: run yielded \{ step: 1 \}, expected text/, /./],
  ])('loses its request with the reason, and no other: %s', async (fault, message, stack) => {
    const { executor, log } = await started('writer');
    executor.submit([write(fault), write('another')]);
    await log.end('another');
    expect(await log.end(fault)).toMatchObject({
      type: 'request-lost',
      message: expect.stringMatching(message) as string,
      stack: expect.stringMatching(stack) as string,
    });
    expect(log.outputs('another').get(0)!.toString()).toContain('another');
  });

  it('fails a request that is refused in a step', async () => {
    const { executor, log } = await started('writer');
    executor.submit([write('refuse late'), write('another')]);
    await log.end('another');
    expect(await log.end('refuse late')).toMatchObject({
      type: 'request-failed',
      code: 'invalid_request',
      message: 'prompt: too late',
    });
  });

  it('runs a batch that exceeds the memory as two, and reports requests that fail within a run', async () => {
    const { executor, log } = await started('runner');
    executor.submit(['too many', 'refused late', 'third', 'fourth'].map((id) => ({ id, input: image(id) })));
    await Promise.all(['too many', 'third', 'fourth'].map((id) => log.end(id)));
    expect(await log.end('refused late')).toMatchObject({ type: 'request-failed', message: 'prompt: is too hard' });
    expect(log.of('request-done')).toHaveLength(3);
    expect(await executor.rpc('sizes_of_runs', {})).toEqual([4, 2, 1, 3]);
  });
});

describe('a fault of the process', () => {
  it.each([
    ['a segmentation fault', /^the engine was killed by SIGSEGV/],
    ['an exit', /^the engine exited with code 3/],
    ['sys.exit', /^the engine exited with code 1/],
    ['a shape of a report', /^the engine was killed by SIGKILL: its reply to step has another form/],
    ['the channel', /^the engine was killed by SIGKILL: it sent an unexpected message: a frame's header/],
  ])('reports engine-lost with the open requests, and restarts: %s', async (fault, message) => {
    const { executor, log } = await started('writer');
    executor.submit([write(fault), long]);
    const lost = await log.next(({ type }) => type === 'engine-lost');
    expect(lost).toEqual({
      type: 'engine-lost',
      message: expect.stringMatching(message) as string,
      requestIds: [fault, long.id],
    });
    expect(log.events.at(-1)).toBe(lost);
    await executor.start();
    executor.submit([write('after')]);
    expect(await log.end('after')).toMatchObject({ type: 'request-done' });
  });

  it('ends the processes that an engine has started', async () => {
    const pidFile = join(folder, 'pid');
    const { executor, log } = await started('writer', { environment: { ...process.env, PID_FILE: pidFile } });
    executor.submit([write('a child that stays')]);
    await log.next(({ type }) => type === 'engine-lost');
    const pid = Number(readFileSync(pidFile, 'utf8'));
    expect(pid).toBeGreaterThan(0);
    await expect.poll(() => hasEnded(pid)).toBe(true);
  });

  it('a hung engine can be killed, and nothing in this process waits for it', async () => {
    const { executor, log } = await started('writer');
    executor.submit([write('a hang')]);
    await log.firstProgress('a hang');
    executor.kill();
    expect(await log.next(({ type }) => type === 'engine-lost')).toMatchObject({ requestIds: ['a hang'] });
  });

  it('ends an engine whose health hook raises an error', async () => {
    const { executor, log } = await started('writer', { checkEveryMs: 10 });
    executor.submit([{ ...long, input: text('an illness', { maxTokens: 4096 }) }]);
    const lost = await log.next(({ type }) => type === 'engine-lost');
    expect(lost).toMatchObject({
      message: expect.stringContaining('raised RuntimeError: the device is gone') as string,
    });
  });
});

/** Returns true also for a process that no parent has waited for yet. */
function hasEnded(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return stdout.trim() === '' || stdout.startsWith('Z');
}

describe('limits', () => {
  // As root, only the memory limits the number of threads: each has a stack of 8 MB.
  it.runIf(process.platform === 'linux').each([
    ['much memory', /MemoryError/],
    ['many threads', /can't start new thread/],
  ])('end a request that takes %s, and no other', async (fault, reason) => {
    const { executor, log } = await started('writer', { maxDataBytes: 512 * 2 ** 20 });
    executor.submit([write(fault), write('another')]);
    await log.end('another');
    const end = await log.end(fault);
    expect(JSON.stringify(end)).toMatch(reason);
    expect(log.of('request-done').map(({ requestId }) => requestId)).toEqual(['another']);
  });

  it('prints do no harm', async () => {
    const { executor, log } = await started('writer');
    executor.submit([write('prints')]);
    expect(await log.end('prints')).toEqual({ type: 'request-done', requestId: 'prints' });
  });
});

describe('own methods', () => {
  it('are called by name with their parameters', async () => {
    const { executor } = await started('painter');
    expect(await executor.rpc('statistics', { unit: 'images' })).toEqual({ largest_step: 0, unit: 'images' });
  });

  it.each([
    ['finish', {}, 'invalid_request', /^method is "finish", expected one of the engine's: statistics$/],
    ['statistics', { nothing: 1 }, 'unavailable', /raised TypeError: .*unexpected keyword argument 'nothing'/],
  ])('of another name or with other parameters are an error: %s %o', async (method, parameters, code, message) => {
    const { executor } = await started('painter');
    await expect(executor.rpc(method, parameters)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
    });
  });
});
