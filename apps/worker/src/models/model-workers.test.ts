import { silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import type { RestartableWorker } from './restartable-worker.ts';
import { ModelWorkers, type ModelWorkersOptions, workerIdOf } from './model-workers.ts';

class OneWorker {
  isReady = false;
  readonly failure: Error | undefined;
  constructor(failure?: Error) {
    this.failure = failure;
  }
  start(): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.isReady = true;
    return Promise.resolve();
  }
  stop(): Promise<void> {
    this.isReady = false;
    return Promise.resolve();
  }
}

/** Opens three models, of which those in `bad` cannot be read. */
function open(bad: Set<string>, options: Partial<ModelWorkersOptions> = {}) {
  const served = new Map<string, OneWorker>();
  const tries: string[] = [];
  const workers = new ModelWorkers({
    directories: ['models/a', 'models/b', 'models/c'],
    createWorker: (directory) => {
      tries.push(directory);
      const worker = new OneWorker(bad.has(directory) ? new Error(`${directory} is damaged`) : undefined);
      if (!bad.has(directory)) served.set(directory, worker);
      return worker as unknown as RestartableWorker;
    },
    stopSignal: new AbortController().signal,
    log: silentLogger(),
    retryMs: 0,
    ...options,
  });
  onTestFinished(() => workers.stop());
  const ready = (): string[] => [...served].filter(([, { isReady }]) => isReady).map(([directory]) => directory);
  return { workers, ready, tries };
}

it('serves the readable models, and the others once they are repaired', async () => {
  const bad = new Set(['models/b']);
  const { workers, ready, tries } = open(bad);
  await workers.start();
  expect(ready()).toEqual(['models/a', 'models/c']);
  expect(workers.isReady).toBe(true);
  await expect.poll(() => tries.length).toBeGreaterThan(5);
  bad.clear();
  await expect.poll(ready).toEqual(['models/a', 'models/c', 'models/b']);
  await workers.stop();
  expect(ready()).toEqual([]);
  expect(workers.isReady).toBe(false);
});

it('releases each worker whose model could not be loaded, and retries one model at a time', async () => {
  const made: { directory: string; isStopped: boolean }[] = [];
  let loading = 0;
  const createWorker = (directory: string): RestartableWorker => {
    const one = { directory, isStopped: false };
    const isBad = directory !== 'models/a' && made.filter((other) => other.directory === directory).length < 3;
    made.push(one);
    const start = async (): Promise<void> => {
      loading += 1;
      await Promise.resolve();
      const isAlone = loading === 1;
      loading -= 1;
      if (isBad || !isAlone) throw new Error('there is no room for it');
    };
    const stop = (): Promise<void> => Promise.resolve(void (one.isStopped = true));
    return { start, stop, isReady: true } as unknown as RestartableWorker;
  };
  const { workers } = open(new Set(), { createWorker });
  await workers.start();
  await expect.poll(() => made.length).toBe(9);
  await workers.stop();
  expect(made.filter(({ isStopped }) => isStopped)).toEqual([made[0], ...made.slice(-2)]);
});

it('fails to start when no model can be served', async () => {
  const { workers } = open(new Set(['models/a', 'models/b', 'models/c']));
  await expect(workers.start()).rejects.toThrow('no model can be served');
});

it('stops during the pause before a retry', async () => {
  const { workers, ready } = open(new Set(['models/b']), { retryMs: 600_000 });
  await workers.start();
  await workers.stop();
  expect(ready()).toEqual([]);
});

it('gives each worker a unique id of at most 64 characters', () => {
  expect(workerIdOf('box', 'emoji-sd')).toBe('box-emoji-sd');
  const host = `${'h'.repeat(51)}-0123456789ab`;
  const ids = ['emoji-sd', 'emoji-writer'].map((model) => workerIdOf(host, model));
  for (const id of [...ids, workerIdOf('b', 'm'.repeat(64))]) expect(id).toMatch(/^[A-Za-z0-9._-]{64}$/);
  expect(new Set(ids).size).toBe(2);
  expect(workerIdOf(host, 'emoji-sd')).toBe(ids[0]);
});
