/** Engines in Python behind a whole system: crashes, hangs and memory cost their own requests a few steps. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRequest } from '@darkroom/store';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ended, fetchImage, make, poll, postJson, stepsOf, stream, submit } from '../e2e/client.ts';
import { growText } from '../e2e/grown-text.ts';
import { longWorkerTtl, type Part, startSystem, stopSystem, type System } from '../e2e/system.ts';

const root = new URL('../../', import.meta.url).pathname;
let system: System;

beforeAll(async () => {
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: longWorkerTtl });
}, 120_000);
afterAll(async () => {
  if (system !== undefined) await stopSystem(system);
});

function startWorker(model: string, fixture: string, settings: Record<string, string> = {}): Promise<Part> {
  const module = join(root, `libs/executor/src/python/__fixtures__/${fixture}.py`);
  const limits = { ENGINE_TIMEOUT_S: '30', CHECKPOINT_STEPS: '20' };
  return system.start('worker', { EXECUTOR: 'python', MODULE: module, MODEL_ID: model, ...limits, ...settings });
}

function engineOf({ process: { pid } }: Part): number {
  return Number(execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' }).trim());
}

async function attempts(id: string): Promise<number> {
  const result = await readRequest(system.store, id);
  return result.status === 'found' ? result.request.attempts : -1;
}

it('a crash costs the rows at most the steps since their last checkpoint, and gives the same image', async () => {
  const worker = await startWorker('painter', 'painter');
  const body = { model: 'painter', prompt: 'a crash', num_inference_steps: 600, seed: 5, output_format: 'png' };
  const whole = await make(system.url, body);
  const id = await submit(system.url, body);
  const events = await stream(system.url, id, { until: (event) => stepsOf([event]).some((step) => step >= 100) });
  process.kill(engineOf(worker), 'SIGSEGV');
  expect(await ended(system.url, id)).toBe('succeeded');
  expect((await fetchImage(system.url, id)).equals(whole)).toBe(true);
  const rest = await stream(system.url, id, { lastEventId: events.at(-1)!.id! });
  const restarted = Math.min(...stepsOf(rest));
  expect(restarted).toBeGreaterThan(80);
  expect(await poll(system.url, id)).toMatchObject({ status: 'succeeded' });
  await worker.stop();
});

it('a killed worker ends an engine that hangs, and the processes that the engine has started', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-pid-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const pidFile = join(folder, 'pid');
  const worker = await startWorker('hanging', 'writer', { PID_FILE: pidFile });
  const id = await submit(system.url, { model: 'hanging', prompt: 'a child, and a hang', max_tokens: 5 });
  await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8')).toMatch(/^[0-9]+$/);
  const pids = [engineOf(worker), Number(readFileSync(pidFile, 'utf8'))];
  expect(pids.filter((pid) => isRunning(pid))).toEqual(pids);
  await worker.kill();
  await expect.poll(() => pids.filter((pid) => isRunning(pid))).toEqual([]);
  await fetch(`${system.url}/v1/predict/${id}`, { method: 'DELETE' });
});

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
}

describe.each([
  ['raise', 'raised ZeroDivisionError', {}, 0],
  ['an exit', 'exited with code 3', {}, 2],
  ['a segmentation fault', 'was killed by SIGSEGV', {}, 2],
  ['a hang', 'was killed by SIGKILL', { ENGINE_TIMEOUT_S: '1' }, 2],
  ['many threads', "can't start new thread", { ENGINE_MEMORY_MB: '400' }, 0],
] as const)('a request with %s', (fault, why, settings, maxLost) => {
  it('fails after its attempts while other requests succeed', { timeout: 120_000 }, async () => {
    const model = `writer-${fault.replaceAll(' ', '-')}`;
    const worker = await startWorker(model, 'writer', settings);
    const body = { model, prompt: 'wish', max_tokens: 400, seed: 3 };
    const neighbour = await submit(system.url, body);
    const bad = await submit(system.url, { model, prompt: fault, max_tokens: 5 });
    const { text, ends, misplaced } = await growText(system.url, neighbour);
    const expected = Array.from({ length: 400 }, (_, at) => `${'wish'.slice(at % 4)}é🦊3/0 `).join('');
    expect({ text, ends, misplaced }).toEqual({ text: expected, ends: ['succeeded'], misplaced: 0 });
    expect(await attempts(neighbour)).toBeLessThanOrEqual(1 + maxLost);
    expect(await ended(system.url, bad)).toBe('failed');
    const log = readFileSync(system.logFile, 'utf8');
    const attempt = log.split('\n').find((line) => line.includes(bad) && line.includes('an attempt failed')) ?? '{}';
    expect(JSON.parse(attempt)).toMatchObject({ reason: expect.stringContaining(why) as string });
    expect(JSON.stringify(await poll(system.url, bad))).not.toContain(why);
    await worker.stop();
  });
});

it('what an engine prints is in the log, and harms nothing', async () => {
  const worker = await startWorker('printer', 'writer');
  const id = await submit(system.url, { model: 'printer', prompt: 'prints', max_tokens: 5 });
  expect(await ended(system.url, id)).toBe('succeeded');
  const log = readFileSync(system.logFile, 'utf8');
  expect(log).toContain('printed by the engine\n');
  expect(log).toContain('written by the engine\n');
  await worker.stop();
});

async function callMethod(body: object): Promise<unknown> {
  const response = await postJson(`${system.url}/admin/workers/methods-1/rpc`, body);
  return ((await response.json()) as { answers: unknown[] }).answers[0];
}

it("calls a method of the engine through the API, and names the engine's methods", async () => {
  const worker = await startWorker('methods', 'painter', { WORKER_ID: 'methods-1' });
  const who = { worker: 'methods-1', model: 'methods', state: 'ready' };
  expect(await callMethod({ method: 'statistics', parameters: { unit: 'images' } })).toEqual({
    ...who,
    result: { largest_step: 0, unit: 'images' },
    error: null,
  });
  expect(await callMethod({ method: 'finish' })).toEqual({
    ...who,
    result: null,
    error: 'method is "finish", expected one of the engine\'s: statistics',
  });
  await worker.stop();
});

it('rows that share a step have different steps, seeds and previews', async () => {
  const worker = await startWorker('rows', 'painter');
  const bodies = [3, 5, 600].map((steps, seed) => {
    return { model: 'rows', prompt: 'rows', num_inference_steps: steps, seed, output_format: 'png' };
  });
  const alone = [await make(system.url, bodies[0]!), await make(system.url, bodies[1]!)];
  const long = await submit(system.url, { ...bodies[2]!, preview: { every: 100 } });
  await stream(system.url, long, { until: (event) => stepsOf([event]).length > 0 });
  expect([await make(system.url, bodies[0]!), await make(system.url, bodies[1]!)]).toEqual(alone);
  const events = await stream(system.url, long);
  expect(await ended(system.url, long)).toBe('succeeded');
  expect(events.some(({ data }) => data.includes('data:image/jpeg;base64,'))).toBe(true);
  await worker.stop();
});

it('the package builds as a wheel with all of its modules', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-wheel-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(root, 'libs/executor/python'), join(folder, 'source'), { recursive: true });
  const run = (...words: string[]) => execFileSync('python3', words, { cwd: folder, encoding: 'utf8' });
  run('-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps', '--wheel-dir', '.', './source');
  const program =
    'import sys; sys.path.insert(0, sys.argv[1]); import darkroom_engine.server as m; print(m.__file__, m.VERSION)';
  const [wheel] = readdirSync(folder).filter((name) => name.endsWith('.whl'));
  expect(run('-c', program, join(folder, wheel!))).toMatch(/darkroom_engine-.*\.whl\/darkroom_engine\/server\.py 1\n$/);
});
