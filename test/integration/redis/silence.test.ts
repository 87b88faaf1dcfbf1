/** Workers that say nothing: only sweeps that took place count against them, whatever became of Redis, janitors and clocks meanwhile. */
import {
  admitRequest,
  type Delivery,
  heartbeatWorker,
  publishModel,
  readRequest,
  readStats,
  registerWorker,
  splitOutput,
  type StoreConnection,
  writeBatch,
  type WriteOutcome,
} from '@darkroom/store';
import { dispatchNext, openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { Janitor } from '../../../apps/janitor/src/janitor.ts';

const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
const nobody = { buried: [], requeued: [], expired: [] };
/** Longer than this machine may be busy with other things. */
const intervalMs = 600_000;
const missed = 4;
const aDayMs = 86_400_000;

interface Silent {
  store: StoreConnection;
  delivery: Delivery;
  /** The next sweep of a janitor, an interval after the last one unless `sinceLastMs` says otherwise. */
  sweep(sinceLastMs?: number): ReturnType<Janitor['sweepOnce']>;
}

/** A worker with a request, which says nothing from now on. */
async function fallSilent(): Promise<Silent> {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  await registerWorker(store, identity, { state: 'ready', capacity: 8, info: {} });
  await admitRequest(store, testEnvelope(), { queueMaxLength: 100, unserved: 'accept' });
  const [delivery] = await dispatchNext(store);
  const janitor = new Janitor({
    store,
    log: silentLogger(),
    sweepIntervalMs: intervalMs,
    workerTtlMs: missed * intervalMs,
    leakSweepIntervalMs: intervalMs,
  });
  onTestFinished(() => janitor.stop());
  const { swept } = store.keysOf('tiny');
  await janitor.sweepOnce('tiny');
  await heartbeatWorker(store, identity);
  return {
    store,
    delivery: delivery!,
    async sweep(sinceLastMs = intervalMs) {
      // The clock of Redis, seen from the last sweep.
      await store.redis.hset(swept, 'atMs', Date.now() - sinceLastMs);
      return janitor.sweepOnce('tiny');
    },
  };
}

function finish({ store, delivery }: Silent): Promise<WriteOutcome[]> {
  const output = { index: 0, contentType: 'x/y', data: Buffer.from('x'), facts: {}, chunkBytes: 3000 };
  const end = { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } } as const;
  return writeBatch(store, identity, [...splitOutput(delivery, output), end], { batch: 1 });
}

it('who misses as many sweeps as it may is alive, and buried by the next', async () => {
  const { sweep, store, delivery } = await fallSilent();
  for (let count = 0; count < missed; count++) expect(await sweep()).toEqual(nobody);
  expect(await sweep()).toEqual({ buried: ['w1'], requeued: [delivery.id], expired: [] });
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 1, running: 0, slots: 0 });
});

it('sweeps of many janitors at the same time count as one', async () => {
  const { sweep } = await fallSilent();
  for (let count = 0; count < 5 * missed; count++) expect(await sweep(1000)).toEqual(nobody);
});

it.each([
  ['an outage of Redis or of all janitors', aDayMs],
  ['a clock that was set ahead', 365 * aDayMs],
  ['a clock that was set back', -aDayMs],
])('%s counts as one sweep, however long it was: the living speak before they are dead', async (_what, sinceLastMs) => {
  const { sweep, store } = await fallSilent();
  for (let count = 1; count < missed; count++) await sweep();
  expect(await sweep(sinceLastMs)).toEqual(nobody);
  expect(await heartbeatWorker(store, identity)).toBe('alive');
  for (let count = 0; count < missed; count++) expect(await sweep()).toEqual(nobody);
});

it.each([
  ['an outage', aDayMs],
  ['a clock that was set ahead', 365 * aDayMs],
  ['a clock that was set back', -aDayMs],
])('%s hides nobody who is dead', async (_what, sinceLastMs) => {
  const { sweep } = await fallSilent();
  await sweep(sinceLastMs);
  for (let count = 1; count < missed; count++) expect(await sweep()).toEqual(nobody);
  expect((await sweep()).buried).toEqual(['w1']);
});

it('a worker that registers after an outage has all of its time', async () => {
  const { sweep, store } = await fallSilent();
  for (let count = 0; count < missed; count++) await sweep();
  await registerWorker(store, { ...identity, workerId: 'w2' }, { state: 'ready', capacity: 8, info: {} });
  expect((await sweep()).buried).toEqual(['w1']);
  for (let count = 1; count < missed; count++) expect(await sweep()).toEqual(nobody);
  expect((await sweep()).buried).toEqual(['w2']);
});

it('delivers although it was silent for as long as it may be', async () => {
  const silent = await fallSilent();
  for (let count = 0; count < missed; count++) await silent.sweep();
  expect((await finish(silent)).at(-1)).toBe('finished');
  expect(await readRequest(silent.store, silent.delivery.id)).toMatchObject({
    request: { state: 'succeeded', attempts: 1 },
  });
});

it('delivers nothing once it is buried, before and after the request is leased again, and registers again', async () => {
  const silent = await fallSilent();
  const { store, delivery } = silent;
  for (let count = 0; count <= missed; count++) await silent.sweep();
  expect(await finish(silent)).toEqual(['lost', 'lost']);
  await registerWorker(store, { ...identity, workerId: 'w2' }, { state: 'ready', capacity: 8, info: {} });
  expect(await dispatchNext(store)).toMatchObject([{ id: delivery.id }]);
  expect(await finish(silent)).toEqual(['lost', 'lost']);
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'running', outputs: [] } });
  expect(await heartbeatWorker(store, identity)).toBe('buried');
  expect(await readStats(store, 'tiny')).toMatchObject({ slots: 8, freeSlots: 7 });
});
