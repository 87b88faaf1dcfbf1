/** Several workers of one start, each with an engine of its own: one call asks all of them, and one that is lost is not the others' loss. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { isStep, make, picture, stepsOf, stream, submit, typesOf } from '../e2e/client.ts';
import { patience, startSystem, stopSystem, type System } from '../e2e/system.ts';

const long = { prompt: 'a red apple on a white background', num_inference_steps: 120, seed: 11, preview: 'off' };

let system: System;
let expected: Buffer;
beforeAll(async () => {
  system = await startSystem({
    environment: { ...patience, NUM_WORKER_PROCESSES: '2', WORKER_ID: 'box', BATCH_MAX_SIZE: '1' },
  });
  const { metricsUrl } = system.part('worker');
  const isReady = async (): Promise<boolean> => (await fetch(`${metricsUrl}/ready`)).ok;
  await vi.waitUntil(isReady, { timeout: 60_000, interval: 500 });
  expected = await make(system.url, long);
});
afterAll(() => stopSystem(system));

interface Answer {
  worker: string;
  state: string | null;
  healthy?: boolean;
  process_bytes?: number | null;
  engine_bytes?: number | null;
}

async function call(command: string, worker = 'box'): Promise<Answer[]> {
  const response = await fetch(`${system.url}/admin/workers/${worker}/${command}`, { method: 'POST' });
  return response.ok ? ((await response.json()) as { answers: Answer[] }).answers : [];
}

const both = [
  ['box-0', true],
  ['box-1', true],
];

async function healths(): Promise<unknown> {
  return (await call('check_health')).map(({ worker, healthy }) => [worker, healthy]);
}

function childrenOf(pid: number): number[] {
  const listed = execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
  return listed.trim().split('\n').map(Number);
}

/** The process of the worker that has this id. */
function processOf(workerId: string): number {
  const all = childrenOf(system.part('worker').process.pid!);
  return all.find((pid) => readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`WORKER_ID=${workerId}\0`))!;
}

/** Two pictures at once, one on each; what the first runs on dies in the middle of it. @returns the events of both. */
async function loseOne(kill: (workerId: string) => void) {
  const ids = [await submit(system.url, long), await submit(system.url, long)];
  for (const id of ids) await stream(system.url, id, { until: isStep(30) });
  kill((await system.store.redis.hget(system.store.keysOf('emoji-sd').request(ids[0]!), 'worker'))!);
  const both = await Promise.all(ids.map((id) => stream(system.url, id)));
  for (const id of ids) expect((await picture(system.url, id)).equals(expected)).toBe(true);
  return both;
}

it.each([
  ['engine', (workerId: string) => process.kill(childrenOf(processOf(workerId))[0]!, 'SIGKILL')],
  ['worker', (workerId: string) => process.kill(processOf(workerId), 'SIGKILL')],
])(
  'starts the %s again that was lost; its row goes on from a checkpoint, and the other never stops',
  async (_what, kill) => {
    const [lost, other] = await loseOne(kill);
    expect(typesOf(lost!)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
    const [resumedAt = 0] = stepsOf(lost!.slice(lost!.findLastIndex(({ event }) => event === 'started')));
    expect(resumedAt).toBeGreaterThan(20);
    expect(typesOf(other!)).toEqual(['queued', 'started', 'succeeded', '[DONE]']);
    await expect.poll(healths, { timeout: 30_000, interval: 500 }).toEqual(both);
  },
);

it('asks all of them at once, and a frozen one holds nobody', async () => {
  const memory = await call('memory');
  expect(memory.map(({ worker }) => worker)).toEqual(['box-0', 'box-1']);
  for (const { process_bytes: own, engine_bytes: engine } of memory) {
    expect(own).toBeGreaterThan(20_000_000);
    expect(engine).toBeGreaterThan(50_000_000);
  }
  const frozen = processOf('box-1');
  process.kill(frozen, 'SIGSTOP');
  try {
    expect(await call('check_health')).toMatchObject([
      { worker: 'box-0', state: 'ready', healthy: true },
      { worker: 'box-1', state: null, healthy: false },
    ]);
  } finally {
    process.kill(frozen, 'SIGCONT');
  }
  expect(await call('sleep')).toMatchObject([{ state: 'vacating' }, { state: 'vacating' }]);
  const asleep = { state: 'asleep', engine_bytes: null };
  await expect.poll(() => call('memory'), { timeout: 30_000 }).toMatchObject([asleep, asleep]);
  expect(await call('wake', 'box-0')).toHaveLength(1);
  await expect
    .poll(() => call('check_health'), { timeout: 30_000 })
    .toMatchObject([{ state: 'ready' }, { state: 'asleep' }]);
});
