/** SLEEP_AFTER_S with a real model: a sleeping worker frees its memory, and the next request wakes it. */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { statusSchema } from '../../apps/api/src/v1/status.ts';
import { expect, it, onTestFinished } from 'vitest';
import { make, fetchImage, stream, submit, typesOf } from '../e2e/client.ts';
import { openSystem, type Part, longWorkerTtl } from '../e2e/system.ts';

const quick = { prompt: 'a red apple on a white background', seed: 7, num_inference_steps: 4, preview: 'off' };

/** Returns the pids of a worker's child processes. */
function childrenOf({ process: { pid } }: Part): string[] {
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .trim()
      .split('\n');
  } catch {
    return [];
  }
}

/** Returns the total resident memory of processes, kB. */
function memoryOf(...pids: (string | number | undefined)[]): number {
  const listed = execFileSync('ps', ['-o', 'rss=', '-p', pids.join(',')], { encoding: 'utf8' });
  return listed
    .trim()
    .split('\n')
    .reduce((sum, line) => sum + Number(line), 0);
}

/** Returns the resident memory of an engine process without a model, kB. */
async function memoryOfEmptyEngine(): Promise<number> {
  const script = new URL('../../libs/executor/dist/process/engine-process.js', import.meta.url).pathname;
  const child = fork(script, { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  // The messages are delivered once the process runs.
  child.send({ type: 'cancel', requestId: 'none' });
  await new Promise((resolve) => child.send({ type: 'submit', requests: [] }, resolve));
  return memoryOf(child.pid);
}

async function statusOf(url: string) {
  return statusSchema.parse(await (await fetch(`${url}/status`)).json());
}

it('stops its engine while asleep, frees its memory, and wakes for the next request with the same bytes', async () => {
  const system = await openSystem({
    parts: ['api', 'batch-former', 'janitor', { name: 'worker', environment: { SLEEP_AFTER_S: '1' } }],
    environment: longWorkerTtl,
  });
  const { url } = system;
  const worker = system.part('worker');
  const { pid } = worker.process;
  const before = await make(url, quick);
  const [workerOnly, awake] = [memoryOf(pid), memoryOf(pid, ...childrenOf(worker))];
  await expect.poll(() => childrenOf(worker)).toEqual([]);
  await expect.poll(async () => (await statusOf(url)).workers).toMatchObject([{ state: 'asleep', loaded: false }]);
  const empty = 1.15 * (workerOnly + (await memoryOfEmptyEngine()));
  expect(awake).toBeGreaterThan(empty);
  expect(memoryOf(pid)).toBeLessThan(empty);
  const counted = await (await fetch(`${system.part('janitor').metricsUrl}/metrics`)).text();
  expect(counted).toMatch(/^darkroom_workers\{(?=.*state="asleep").*\} 1$/m);
  expect(counted).toMatch(/^darkroom_workers\{(?=.*state="idle").*\} 0$/m);
  expect((await fetch(`${worker.metricsUrl}/ready`)).status).toBe(200);
  const id = await submit(url, quick);
  expect(typesOf(await stream(url, id))).toContain('loading');
  expect(await fetchImage(url, id)).toEqual(before);
});
