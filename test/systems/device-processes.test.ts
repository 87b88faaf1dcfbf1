/** NUM_WORKER_PROCESSES: a worker call reaches all worker processes, and the loss of one does not affect the others. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { isStep, make, fetchImage, stepsOf, stream, submit, typesOf } from '../e2e/client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';

const long = { prompt: 'a red apple on a white background', num_inference_steps: 120, seed: 11, preview: 'off' };

let system: System;
let expected: Buffer;
beforeAll(async () => {
  system = await startSystem({
    environment: { ...longWorkerTtl, NUM_WORKER_PROCESSES: '2', WORKER_ID: 'box', BATCH_MAX_SIZE: '1' },
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

/** Returns the pid of the worker process with this id. */
function processOf(workerId: string): number {
  const all = childrenOf(system.part('worker').process.pid!);
  return all.find((pid) => readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`WORKER_ID=${workerId}\0`))!;
}

/** Runs one image on each worker and kills the first one's engine or worker midway; returns the events of both. */
async function killDuringImages(kill: (workerId: string) => void) {
  const ids = [await submit(system.url, long), await submit(system.url, long)];
  for (const id of ids) await stream(system.url, id, { until: isStep(30) });
  kill((await system.store.redis.hget(system.store.keysOf('emoji-sd').request(ids[0]!), 'worker'))!);
  const both = await Promise.all(ids.map((id) => stream(system.url, id)));
  for (const id of ids) expect((await fetchImage(system.url, id)).equals(expected)).toBe(true);
  return both;
}

it.each([
  ['engine', (workerId: string) => process.kill(childrenOf(processOf(workerId))[0]!, 'SIGKILL')],
  ['worker', (workerId: string) => process.kill(processOf(workerId), 'SIGKILL')],
])(
  'restarts a killed %s process and resumes its row from a checkpoint, without interrupting the other worker',
  async (_what, kill) => {
    const [lost, other] = await killDuringImages(kill);
    expect(typesOf(lost!)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
    const [resumedAt = 0] = stepsOf(lost!.slice(lost!.findLastIndex(({ event }) => event === 'started')));
    expect(resumedAt).toBeGreaterThan(20);
    expect(typesOf(other!)).toEqual(['queued', 'started', 'succeeded', '[DONE]']);
    await expect.poll(healths, { timeout: 30_000, interval: 500 }).toEqual(both);
  },
);

it('calls all workers at once, and reports a frozen one as unhealthy without delaying the others', async () => {
  const memory = await call('memory');
  expect(memory.map(({ worker }) => worker)).toEqual(['box-0', 'box-1']);
  for (const { process_bytes: processBytes, engine_bytes: engine } of memory) {
    expect(processBytes).toBeGreaterThan(20_000_000);
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
