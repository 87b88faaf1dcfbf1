/** A worker whose model fails to load reports the failure in /health, /status and its log, and does not register. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readStats } from '@darkroom/store';
import { inject, expect, it, onTestFinished } from 'vitest';
import { openSystem } from '../e2e/system.ts';

const root = new URL('../../', import.meta.url).pathname;
const unet = 'unet/model_int8.onnx';

function copyModel(): string {
  const directory = join(mkdtempSync(join(tmpdir(), 'darkroom-failed-load-')), 'tiny');
  onTestFinished(() => rmSync(join(directory, '..'), { recursive: true }));
  cpSync(join(root, 'models/emoji-sd'), directory, { recursive: true });
  return directory;
}

it.each<[what: string, damage: (directory: string) => void, reason: RegExp]>([
  [
    'a truncated graph, detected by the engine',
    (directory) => truncateSync(join(directory, unet), 5_000_000),
    /^unet\/model_int8\.onnx: is not a whole ONNX file: it is cut short: it has 5000000 bytes/,
  ],
  [
    'a missing file, detected by the worker',
    (directory) => rmSync(join(directory, 'tokenizer/merges.txt')),
    /^tokenizer\/merges\.txt: is missing$/,
  ],
])('exits, reports the reason and registers no worker for %s', async (_what, damage, reason) => {
  const system = await openSystem({ parts: ['api'] });
  const directory = copyModel();
  damage(directory);
  const environment = {
    REDIS_URL: inject('redisUrl'),
    REDIS_PREFIX: system.prefix,
    MODEL_DIR: directory,
    LOG_FILE: system.logFile,
  };
  expect(await runWorker(environment)).toBe(1);

  const health = (await (await fetch(`${system.url}/health`)).json()) as { failed_to_load: { reason: string }[] };
  expect(health).toEqual({
    status: 'degraded',
    worker_pool_initialized: false,
    active_workers: 0,
    model_loaded: false,
    concurrent_support: true,
    kinds: [],
    failed_to_load: [{ model: 'tiny', reason: expect.stringMatching(/^failed to load: /) as string }],
  });
  const status = (await (await fetch(`${system.url}/status`)).json()) as { failed_to_load: { reason: string }[] };
  expect(status.failed_to_load).toMatchObject([{ model: 'tiny', reason: expect.stringMatching(reason) as string }]);
  expect(JSON.stringify([health, status])).not.toContain(directory);
  // No worker is registered, and the model is not listed.
  expect(await readStats(system.store, 'tiny')).toMatchObject({ workers: { loading: 0, idle: 0, busy: 0 } });
  expect(await (await fetch(`${system.url}/v1/models`)).json()).toMatchObject({ data: [] });
  // The log has the reason for the operator.
  expect(readFileSync(system.logFile, 'utf8')).toMatch(new RegExp(reason.source.slice(1).replace(/\$$/, '')));

  // With repaired files a worker serves the model, and the failure is no longer reported.
  rmSync(directory, { recursive: true });
  cpSync(join(root, 'models/emoji-sd'), directory, { recursive: true });
  await system.start('worker', { MODEL_DIR: directory });
  expect(await (await fetch(`${system.url}/health`)).json()).toEqual({
    status: 'ok',
    worker_pool_initialized: true,
    active_workers: 1,
    concurrent_support: true,
    kinds: ['image'],
    model_loaded: true,
  });
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
