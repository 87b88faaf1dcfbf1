import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@darkroom/testing';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { listGpus } from '../engine/list-gpus.ts';
import { WorkerProcesses } from './worker-processes.ts';

let directory: string;
let script: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'darkroom-processes-'));
  script = join(directory, 'worker.mjs');
  // Says what it was given, and does what a worker does with a supervisor.
  writeFileSync(
    script,
    `import { writeFileSync } from 'node:fs';
    const { WORKER_ID, NUM_WORKER_PROCESSES, METRICS_PORT, CUDA_VISIBLE_DEVICES } = process.env;
    const given = { NUM_WORKER_PROCESSES, METRICS_PORT, CUDA_VISIBLE_DEVICES };
    writeFileSync(new URL(\`./\${WORKER_ID}.\${process.pid}.json\`, import.meta.url), JSON.stringify(given));
    for (const event of ['SIGTERM', 'disconnect']) process.on(event, () => process.exit(0));
    process.send('ready');`,
  );
  onTestFinished(() => rmSync(directory, { recursive: true }));
});

/** What each process was given, by the order of their ids. */
function started(): { id: string; pid: number; given: unknown }[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .toSorted()
    .map((name) => {
      const [id = '', pid] = name.split('.');
      return { id, pid: Number(pid), given: JSON.parse(readFileSync(join(directory, name), 'utf8')) as unknown };
    });
}

function open(options: Partial<ConstructorParameters<typeof WorkerProcesses>[0]>): WorkerProcesses {
  const processes = new WorkerProcesses({
    count: 3,
    gpus: [],
    workerId: 'host',
    metricsPort: undefined,
    script,
    log: silentLogger(),
    restart: { firstMs: 0, mostMs: 0, calmMs: 0 },
    ...options,
  });
  onTestFinished(() => processes.stop());
  return processes;
}

function given(METRICS_PORT: string, CUDA_VISIBLE_DEVICES: string): unknown {
  return { NUM_WORKER_PROCESSES: '1', METRICS_PORT, CUDA_VISIBLE_DEVICES };
}

it('deals out the GPUs, and gives each an id and a port for its metrics', async () => {
  vi.stubEnv('METRICS_PORT', '9090');
  onTestFinished(() => void vi.unstubAllEnvs());
  const processes = open({ gpus: ['2', 'GPU-5'], metricsPort: 9090, workerId: 'w'.repeat(64) });
  await processes.start();
  await expect.poll(() => processes.isReady).toBe(true);
  expect(started().map((process) => [process.id, process.given])).toEqual([
    [`${'w'.repeat(61)}-0`, given('9091', '2')],
    [`${'w'.repeat(61)}-1`, given('9092', 'GPU-5')],
    [`${'w'.repeat(61)}-2`, given('9093', '2')],
  ]);
});

it('starts one again that died, and is not ready until that one is', async () => {
  const log = silentLogger();
  const processes = open({ count: 2, log });
  await processes.start();
  await expect.poll(() => processes.isReady).toBe(true);
  const [first, second] = started();
  const readyAtAnEnd: boolean[] = [];
  vi.spyOn(log, 'error').mockImplementation(() => void readyAtAnEnd.push(processes.isReady));
  process.kill(first!.pid, 'SIGKILL');
  await expect.poll(() => readyAtAnEnd).toEqual([false]);
  await expect.poll(() => processes.isReady).toBe(true);
  const all = started();
  expect(all.filter(({ id }) => id === 'host-0')).toHaveLength(2);
  expect(all.filter(({ id }) => id === 'host-1')).toEqual([second]);
});

it('takes all of them with it when it stops', async () => {
  const processes = open({ count: 2 });
  await processes.start();
  await expect.poll(() => processes.isReady).toBe(true);
  await processes.stop();
  for (const { pid } of started()) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  expect(processes.isReady).toBe(false);
});

it('counts GPUs as CUDA does, whatever their numbers on the machine', () => {
  for (const name of ['nvidia2', 'nvidia5', 'nvidiactl', 'nvidia-uvm', 'null'])
    writeFileSync(join(directory, name), '');
  expect(listGpus(directory)).toEqual(['0', '1']);
});
