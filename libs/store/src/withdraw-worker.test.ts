/** A worker that an operator drains: it finishes, takes nothing new and stays; then it is resumed, stops or dies. */
import { allKeys, openTestStore, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import {
  admitRequest,
  buryWorkers,
  type Delivery,
  drainWorker,
  finishRequest,
  heartbeatWorker,
  leaseBatch,
  openJobTaker,
  readWorkers,
  registerWorker,
  resumeWorker,
  type StoreConnection,
  withdrawWorker,
} from './index.ts';

const lease = { mode: 'shared', maxRows: 8, maxAttempts: 3 } as const;
const worker = { model: 'tiny', workerId: 'w1' };
const identity = { ...worker, incarnation: 'first' };

async function register(store: StoreConnection, state: 'loading' | 'ready' = 'ready', incarnation = 'first') {
  const announcement = { state, capacity: 8, ttlMs: 60_000, info: {} };
  await registerWorker(store, { ...worker, incarnation }, announcement);
}

async function take(store: StoreConnection): Promise<Delivery> {
  await admitRequest(store, testEnvelope(), { queueMaxLength: 100, unserved: 'accept' });
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  const [delivery] = await taker.take(1);
  return delivery!;
}

async function listsOf(store: StoreConnection): Promise<string[]> {
  const names = ['loading', 'idle', 'busy', 'draining'] as const;
  const { workers } = store.keysOf('tiny');
  const scores = await Promise.all(names.map((name) => store.redis.zscore(workers[name], 'w1')));
  return names.filter((_name, index) => scores[index] !== null);
}

async function bury(store: StoreConnection): Promise<void> {
  await store.redis.del(store.keysOf('tiny').alive('w1'));
  expect(await buryWorkers(store, 'tiny', { pauseMs: 60_000, forgiveMs: 1 })).toMatchObject({
    workers: [{ workerId: 'w1' }],
  });
}

it('finishes what it has, gets no lease, and is told nothing', async () => {
  const store = openTestStore();
  await register(store);
  const running = await take(store);
  await leaseBatch(store, 'tiny', [running], lease);
  await store.redis.del(store.keysOf('tiny').inbox('w1'));
  expect(await withdrawWorker(store, worker)).toBe(true);
  expect(await withdrawWorker(store, worker)).toBe(true);
  const next = await take(store);
  expect((await leaseBatch(store, 'tiny', [next], lease)).outcomes).toEqual(['waiting']);
  expect(await finishRequest(store, 'tiny', 'w1', running, { state: 'succeeded' })).toBe('finished');
  expect((await leaseBatch(store, 'tiny', [next], lease)).outcomes).toEqual(['waiting']);
  expect(await listsOf(store)).toEqual(['draining']);
  expect(await heartbeatWorker(store, identity, { ttlMs: 60_000 })).toBe('alive');
  expect(await store.redis.exists(store.keysOf('tiny').inbox('w1'))).toBe(0);
});

it('takes leases again when it is resumed, with the rows it has free', async () => {
  const store = openTestStore();
  await register(store);
  await leaseBatch(store, 'tiny', [await take(store)], lease);
  const before = await allKeys(store);
  await withdrawWorker(store, worker);
  expect(await resumeWorker(store, worker)).toBe('resumed');
  expect(await resumeWorker(store, worker)).toBe('resumed');
  expect(await listsOf(store)).toEqual(['busy']);
  expect(await readWorkers(store, 'tiny')).toMatchObject([{ state: 'busy', freeRows: 7, isStopping: false }]);
  expect(await allKeys(store)).toEqual(before);
  expect(await leaseBatch(store, 'tiny', [await take(store)], lease)).toMatchObject({ workerId: 'w1' });
});

it('does not get work before it has loaded, whatever is said to it in between', async () => {
  const store = openTestStore();
  await register(store, 'loading');
  await withdrawWorker(store, worker);
  await resumeWorker(store, worker);
  expect(await listsOf(store)).toEqual(['loading']);
  await withdrawWorker(store, worker);
  expect(await readWorkers(store, 'tiny')).toMatchObject([{ state: 'draining', isLoaded: false }]);
  await register(store);
  expect(await listsOf(store)).toEqual(['draining']);
  // Its engine dies, and it starts another.
  await register(store, 'loading');
  expect(await listsOf(store)).toEqual(['draining']);
  await register(store);
  await resumeWorker(store, worker);
  expect(await listsOf(store)).toEqual(['idle']);
  expect(await readWorkers(store, 'tiny')).toMatchObject([{ isLoaded: true }]);
});

it('cannot be resumed while it stops', async () => {
  const store = openTestStore();
  await register(store);
  await withdrawWorker(store, worker);
  await drainWorker(store, identity);
  expect(await resumeWorker(store, worker)).toBe('stopping');
  expect(await listsOf(store)).toEqual(['draining']);
  expect(await readWorkers(store, 'tiny')).toMatchObject([{ state: 'draining', isStopping: true }]);
});

it('stays drained when it was taken for dead and is not, and is as new when it starts again', async () => {
  const store = openTestStore();
  await register(store);
  await withdrawWorker(store, worker);
  await bury(store);
  expect(await allKeys(store)).toContain(store.keysOf('tiny').drained('w1'));
  await register(store);
  expect(await listsOf(store)).toEqual(['draining']);
  expect(await allKeys(store)).not.toContain(store.keysOf('tiny').drained('w1'));
  await bury(store);
  await register(store, 'ready', 'second');
  expect(await listsOf(store)).toEqual(['idle']);
});

it('does not hold up a request that must run alone and was promised it', async () => {
  const store = openTestStore();
  await register(store);
  await leaseBatch(store, 'tiny', [await take(store)], lease);
  const alone = await take(store);
  await leaseBatch(store, 'tiny', [alone], { ...lease, mode: 'exclusive' });
  expect(await store.redis.get(store.keysOf('tiny').reserved)).toBe('w1');
  await withdrawWorker(store, worker);
  expect(await store.redis.get(store.keysOf('tiny').reserved)).toBeNull();
});

it('is none when nobody has the id', async () => {
  const store = openTestStore();
  expect(await withdrawWorker(store, worker)).toBe(false);
  expect(await resumeWorker(store, worker)).toBe('unknown');
  expect(await allKeys(store)).toEqual([]);
});
