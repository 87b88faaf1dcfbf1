import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@darkroom/testing';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { listGpus, WorkerProcesses } from './worker-processes.ts';

let directory: string;
let script: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'darkroom-processes-'));
  script = join(directory, 'worker.mjs');
  // Writes its environment to a file and handles signals like a worker.
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

/** The environment that each process got, sorted by id. */
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
    stopSignal: new AbortController().signal,
    restart: { firstMs: 0, maxMs: 0, resetAfterMs: 0 },
    ...options,
  });
  onTestFinished(() => processes.stop());
  return processes;
}

function given(METRICS_PORT: string, CUDA_VISIBLE_DEVICES: string): unknown {
  return { NUM_WORKER_PROCESSES: '1', METRICS_PORT, CUDA_VISIBLE_DEVICES };
}

it('assigns GPUs, worker ids and metrics ports to the processes', async () => {
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

it('restarts a process that died, and is not ready until it is', async () => {
  const log = silentLogger();
  const processes = open({ count: 2, log });
  await processes.start();
  await expect.poll(() => processes.isReady).toBe(true);
  const [first, second] = started();
  const readyAtAnEnd: boolean[] = [];
  const errors = vi.spyOn(log, 'error').mockImplementation(() => void readyAtAnEnd.push(processes.isReady));
  process.kill(first!.pid, 'SIGKILL');
  await expect.poll(() => readyAtAnEnd).toEqual([false]);
  const end = { exit_signal: 'SIGKILL', how: 'was killed by SIGKILL', process: 0 };
  expect(errors.mock.lastCall).toEqual([expect.objectContaining(end), 'worker process exited; restarting']);
  await expect.poll(() => processes.isReady).toBe(true);
  const all = started();
  expect(all.filter(({ id }) => id === 'host-0')).toHaveLength(2);
  expect(all.filter(({ id }) => id === 'host-1')).toEqual([second]);
});

it('stops all processes when it stops', async () => {
  const processes = open({ count: 2 });
  await processes.start();
  await expect.poll(() => processes.isReady).toBe(true);
  await processes.stop();
  for (const { pid } of started()) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  expect(processes.isReady).toBe(false);
});

it('numbers GPUs from 0 as CUDA does, regardless of their device files', () => {
  for (const name of ['nvidia2', 'nvidia5', 'nvidiactl', 'nvidia-uvm', 'null'])
    writeFileSync(join(directory, name), '');
  expect(listGpus(directory)).toEqual(['0', '1']);
});

it('resolves start when the first process is ready, and not before', async () => {
  // Becomes ready when the test writes this file.
  const ready = join(directory, 'model-is-loaded');
  writeFileSync(
    script,
    `import { existsSync } from 'node:fs';
    process.on('disconnect', () => process.exit(0));
    const timer = setInterval(() => {
      if (!existsSync(${JSON.stringify(ready)}) || process.env.WORKER_ID !== 'host-1') return;
      clearInterval(timer);
      process.send('ready');
    }, 5);
    process.send('loading');`,
  );
  const processes = open({ count: 2 });
  let isStarted = false;
  const starting = processes.start().then(() => (isStarted = true));
  await expect.poll(() => readChildren()).toHaveLength(2);
  expect(isStarted).toBe(false);
  writeFileSync(ready, '');
  await starting;
  expect(processes.isReady).toBe(false);
});

it('stops before any process is ready', async () => {
  writeFileSync(script, `process.on('disconnect', () => process.exit(0)); setInterval(() => {}, 2 ** 30);`);
  const stopping = new AbortController();
  const processes = open({ count: 2, stopSignal: stopping.signal });
  const starting = processes.start();
  await expect.poll(() => readChildren()).toHaveLength(2);
  stopping.abort();
  await starting;
  await processes.stop();
  expect(readChildren()).toEqual([]);
});

/** Returns the pids of processes that run the script. */
function readChildren(): string[] {
  const { stdout } = spawnSync('pgrep', ['-f', script], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean);
}
