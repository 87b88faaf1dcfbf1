import { silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import type { Worker } from '../worker.ts';
import { ModelWorkers, type ModelWorkersOptions, workerIdOf } from './model-workers.ts';

class OneWorker {
  isReady = false;
  start(): Promise<void> {
    this.isReady = true;
    return Promise.resolve();
  }
  stop(): Promise<void> {
    this.isReady = false;
    return Promise.resolve();
  }
}

/** Models of which some cannot be read until the test has put them right. */
function open(bad: Set<string>, options: Partial<ModelWorkersOptions> = {}) {
  const served = new Map<string, OneWorker>();
  const tries: string[] = [];
  const workers = new ModelWorkers({
    directories: ['models/a', 'models/b', 'models/c'],
    createWorker: (directory) => {
      tries.push(directory);
      if (bad.has(directory)) return Promise.reject(new Error(`${directory} is damaged`));
      const worker = new OneWorker();
      served.set(directory, worker);
      return Promise.resolve(worker as unknown as Worker);
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

it('serves what can be read, and the rest once it is put right', async () => {
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

it('lets go of each worker whose model could not be loaded, and tries one model after the other', async () => {
  const made: { directory: string; isStopped: boolean }[] = [];
  let loading = 0;
  const createWorker = (directory: string): Promise<Worker> => {
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
    return Promise.resolve({ start, stop, isReady: true } as unknown as Worker);
  };
  const { workers } = open(new Set(), { createWorker });
  await workers.start();
  await expect.poll(() => made.length).toBe(9);
  await workers.stop();
  expect(made.filter(({ isStopped }) => isStopped)).toEqual([made[0], ...made.slice(-2)]);
});

it('ends where no model can be served, for a supervisor to start it again', async () => {
  const { workers } = open(new Set(['models/a', 'models/b', 'models/c']));
  await expect(workers.start()).rejects.toThrow('no model can be served');
});

it('stops while something is tried again', async () => {
  const { workers, ready } = open(new Set(['models/b']), { retryMs: 600_000 });
  await workers.start();
  await workers.stop();
  expect(ready()).toEqual([]);
});

it('gives each worker an id of its own, which fits', () => {
  expect(workerIdOf('box', 'emoji-sd')).toBe('box-emoji-sd');
  const host = `${'h'.repeat(51)}-0123456789ab`;
  const ids = ['emoji-sd', 'emoji-writer'].map((model) => workerIdOf(host, model));
  for (const id of [...ids, workerIdOf('b', 'm'.repeat(64))]) expect(id).toMatch(/^[A-Za-z0-9._-]{64}$/);
  expect(new Set(ids).size).toBe(2);
  expect(workerIdOf(host, 'emoji-sd')).toBe(ids[0]);
});
