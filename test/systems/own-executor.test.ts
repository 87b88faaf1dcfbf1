/** Custom executor modules that throw, hang, flood or crash: their request fails and other requests succeed. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRequest, readStats } from '@darkroom/store';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { ended, fetchImage, make, poll, postJson, stream, submit } from '../e2e/client.ts';
import { growText } from '../e2e/grown-text.ts';
import { type Part, longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';

const root = new URL('../../', import.meta.url).pathname;
const fixture = (name: string): string => join(root, `libs/executor/src/module/__fixtures__/${name}.mjs`);
const folder = mkdtempSync(join(tmpdir(), 'darkroom-own-'));
let system: System;

beforeAll(async () => {
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: longWorkerTtl });
  // `other` is a separate model in a separate process, which the faults must not affect.
  await Promise.all([
    startWorker('writer', 'writer', 2),
    startWorker('other', 'writer'),
    startWorker('painter', 'painter'),
  ]);
}, 120_000);
afterAll(async () => {
  if (system !== undefined) await stopSystem(system);
  rmSync(folder, { recursive: true });
});

/** Starts a worker for a module. `timeoutS`: ENGINE_TIMEOUT_S, long enough that a busy machine does not exceed it. */
function startWorker(model: string, module: string, timeoutS = 30): Promise<Part> {
  const settings = { EXECUTOR: fixture(module), MODEL_ID: model, ENGINE_TIMEOUT_S: String(timeoutS) };
  return system.start('worker', settings);
}

const long = { prompt: 'wish', max_tokens: 1500 };

/** Returns the text that the fixture module writes. */
function textOf({ prompt, max_tokens: count }: typeof long, seed: number): string {
  return Array.from({ length: count }, (_, at) => `${prompt.slice(at % prompt.length)}é🦊${seed}/0 `).join('');
}

async function read(id: string): Promise<{ text: string; ends: string[] }> {
  const { text, ends, misplaced } = await growText(system.url, id);
  expect(misplaced).toBe(0);
  return { text, ends };
}

async function attempts(id: string): Promise<number> {
  const result = await readRequest(system.store, id);
  return result.status === 'found' ? result.request.attempts : -1;
}

describe.each([
  // Only the faulty request is affected.
  ['throw at once', 'threw: thrown at once', 0],
  ['a wrong type', 'broke its contract: run yielded', 0],
  ['100 MB', 'threw: it sent a value of 100000007 bytes, expected at most 1048576', 0],
  ['too long a text', 'broke its contract: run wrote a text of', 0],
  // The process dies with all of its requests, once together and once more; the last attempt of each runs alone.
  ['an unhandled rejection', 'exited with code 1: nobody caught this', 2],
  ['exit', 'exited with code 3', 2],
  ['an infinite loop', 'was killed by SIGKILL: it continued after its signal was aborted', 2],
  ['a word of another shape', 'was killed by SIGKILL: it sent an unexpected message', 2],
] as const)('a request with %s', (fault, why, maxLost) => {
  it('fails after its attempts while other requests succeed', { timeout: 120_000 }, async () => {
    // A separate worker for each fault: consecutive losses make a worker back off longer.
    const model = `writer-${fault.toLowerCase().replaceAll(' ', '-')}`;
    const worker = await startWorker(model, 'writer', fault === 'an infinite loop' ? 2 : 30);
    const neighbours = [1, 2].map((seed) => ({ model, ...long, seed }));
    const others = [3, 4].map((seed) => ({ model: 'other', ...long, seed }));
    const bodies = [...neighbours, ...others];
    const ids = await Promise.all(bodies.map((body) => submit(system.url, body)));
    const bad = await submit(system.url, { model, prompt: fault, max_tokens: 5 });
    const texts = await Promise.all(ids.map((id) => read(id)));
    expect(texts).toEqual(bodies.map((body) => ({ text: textOf(body, body.seed), ends: ['succeeded'] })));
    expect(await ended(system.url, bad)).toBe('failed');
    expect(await poll(system.url, bad)).toMatchObject({
      status: 'failed',
      error: {
        code: expect.stringMatching(/^(?:engine_error|timeout)$/),
        message: expect.stringMatching(/^Failed in all 3 attempts: \w+/),
      },
    });
    expect(await attempts(bad)).toBe(3);
    const lost = await Promise.all(ids.map((id) => attempts(id)));
    // Attempts that were lost with the process, plus the one that succeeded.
    for (const count of lost.slice(0, 2)) expect(count).toBeLessThanOrEqual(1 + maxLost);
    expect(lost.slice(2)).toEqual([1, 1]);
    const log = readFileSync(system.logFile, 'utf8');
    // The log has the request id and the full reason; clients get only the class of the error.
    const attempt = log.split('\n').find((line) => line.includes(bad) && line.includes('an attempt failed')) ?? '{}';
    expect(JSON.parse(attempt)).toMatchObject({ reason: expect.stringContaining(`${fixture('writer')} ${why}`) });
    expect(JSON.stringify(await poll(system.url, bad))).not.toContain(why);
    expect(await make(system.url, { model: 'painter', prompt: 'apples' })).toHaveProperty('length');
    await worker.stop();
  });
});

it('streams a large image in several chunks, and continues the stream at any of them', async () => {
  const id = await submit(system.url, { model: 'painter', prompt: 'noise', size: '800x800' });
  const events = await stream(system.url, id);
  const chunks = events
    .filter(({ event }) => event === 'image')
    .map(({ data }) => JSON.parse(data) as { b64: string; total_chunks: number });
  expect(chunks.length).toBeGreaterThan(3);
  expect(chunks).toHaveLength(chunks[0]!.total_chunks);
  const file = Buffer.concat(chunks.map(({ b64 }) => Buffer.from(b64, 'base64')));
  expect(file.equals(await fetchImage(system.url, id))).toBe(true);
  const first = events.findIndex(({ event }) => event === 'image');
  for (const [offset, { id: lastEventId }] of events.slice(first, first + chunks.length).entries())
    expect(await stream(system.url, id, { lastEventId: lastEventId! })).toEqual(events.slice(first + offset + 1));
});

it('keeps serving other requests and sending heartbeats while a module floods it with messages', async () => {
  const flood = await submit(system.url, { model: 'writer', prompt: 'a flood of nothing', max_tokens: 4000 });
  await stream(system.url, flood, { until: ({ event }) => event === 'delta' });
  const body = { model: 'writer', ...long, seed: 9 };
  expect(await read(await submit(system.url, body))).toEqual({ text: textOf(body, 9), ends: ['succeeded'] });
  await fetch(`${system.url}/v1/predict/${flood}`, { method: 'DELETE' });
  expect(['canceled', 'succeeded']).toContain(await ended(system.url, flood));
  expect(readFileSync(system.logFile, 'utf8')).not.toContain('reaped while alive');
});

it('requeues only the request whose output falls silent', { timeout: 120_000 }, async () => {
  const bad = await submit(system.url, { model: 'writer', prompt: 'silence', max_tokens: 5 });
  await stream(system.url, bad, { until: ({ event }) => event === 'delta' });
  const body = { model: 'writer', ...long, seed: 9 };
  const id = await submit(system.url, body);
  expect(await read(id)).toEqual({ text: textOf(body, 9), ends: ['succeeded'] });
  expect(await attempts(id)).toBe(1);
  expect(await ended(system.url, bad)).toBe('failed');
  expect(readFileSync(system.logFile, 'utf8')).toContain('sent nothing for an output within 2 s');
});

it('stops the module process while asleep, and wakes for the next request', async () => {
  const settings = { EXECUTOR: fixture('writer'), MODEL_ID: 'sleeper', SLEEP_AFTER_S: '1' };
  const worker = await system.start('worker', settings);
  const processes = (): string => {
    const { stdout } = spawnSync('pgrep', ['-P', String(worker.process.pid)], { encoding: 'utf8' });
    return stdout.trim();
  };
  expect(processes()).toMatch(/^\d+$/);
  await expect.poll(processes, { timeout: 30_000 }).toBe('');
  const body = { model: 'sleeper', ...long, seed: 9 };
  const id = await submit(system.url, body);
  expect(await read(id)).toEqual({ text: textOf(body, 9), ends: ['succeeded'] });
  expect((await stream(system.url, id)).map(({ event }) => event)).toContain('loading');
  await worker.stop();
});

it('encodes images in the requested format, and serves a file from the module unchanged', async () => {
  const body = { model: 'painter', prompt: 'apples', size: '64x32', num_inference_steps: 4, seed: 7 };
  // Slow enough to be followed: previews are deleted when the request ends.
  const slow = { ...body, size: '1024x32', num_inference_steps: 2, preview: { every: 1 } };
  const id = await submit(system.url, { ...slow, output_format: 'webp', n: 2 });
  const events = await stream(system.url, id);
  expect(events.some(({ data }) => data.includes('data:image/png;base64,'))).toBe(true);
  expect(await poll(system.url, id)).toMatchObject({
    status: 'succeeded',
    images: [
      { width: 1024, height: 32, seed: 7, content_type: 'image/webp' },
      { seed: 8, content_type: 'image/webp' },
    ],
  });
  const file = await submit(system.url, { ...body, prompt: 'file', output_format: 'webp' });
  expect(await ended(system.url, file)).toBe('succeeded');
  expect(await poll(system.url, file)).toMatchObject({ images: [{ content_type: 'image/png', width: 64 }] });
  const refused = await postJson(`${system.url}/v1/predict`, { ...body, num_inference_steps: 9 });
  expect(await refused.json()).toMatchObject({
    error: { message: 'num_inference_steps is 9, expected a whole number from 1 to 8' },
  });
});

let broken = 0;
it.each([
  ['does not exist', undefined, 'there is no such file', 'and there is no such file'],
  [
    'throws when it is loaded',
    `throw new Error('no licence in /etc/secret');`,
    "see the worker's log",
    'it could not be loaded: no licence in /etc/secret',
  ],
  [
    'has no createExecutor',
    'export const create = 1;',
    'exports a function createExecutor',
    'expected a module that exports a function createExecutor',
  ],
  [
    'has a wrong card',
    `export const createExecutor = () => ({ card: { kind: 'music' }, run() {} });`,
    'card.kind is',
    'card.kind is "music", expected "text" or "image"',
  ],
])('exits with a one-line error when the module %s', async (_name, source, shown, logged) => {
  const model = `broken-${broken++}`;
  const file = join(folder, `${model}.mjs`);
  if (source !== undefined) writeFileSync(file, source);
  const environment = {
    REDIS_URL: inject('redisUrl'),
    REDIS_PREFIX: system.prefix,
    EXECUTOR: file,
    LOG_FILE: system.logFile,
  };
  expect(await runWorker(environment)).toBe(1);
  const lines = readFileSync(system.logFile, 'utf8').split('\n');
  const line = lines.findLast((text) => text.includes('"level":"fatal"')) ?? '';
  expect(line.replaceAll('\\"', '"')).toMatch(/"message":"EXECUTOR is [^"]*\/broken-\d\.mjs: /);
  expect(line.replaceAll('\\"', '"')).toContain(logged);
  const failure = await vi.waitFor(async () => {
    const status = (await (await fetch(`${system.url}/status`)).json()) as {
      failed_to_load: { model: string; reason: string }[];
    };
    const found = status.failed_to_load.find((each) => each.model === model);
    expect(found).toBeDefined();
    return found!;
  }, 10_000);
  const { reason } = failure;
  expect(reason).not.toContain('secret');
  expect(reason).not.toContain(folder);
  expect(reason).toContain(shown);
  expect(await readStats(system.store, model)).toMatchObject({ workers: { loading: 0, idle: 0, busy: 0 } });
});

/** Runs a worker process until it exits; returns its exit code. */
async function runWorker(environment: Record<string, string>): Promise<number | null> {
  const child: ChildProcess = fork(join(root, 'apps/worker/dist/main.js'), {
    cwd: root,
    execArgv: [],
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}
