/**
 * Workers without heartbeats: only sweeps that took place count, not outages of Redis or janitors, nor clock changes.
 */
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

const identity = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };
const nothing = { reaped: [], requeued: [], expired: [] };
/** Longer than a busy machine may pause a test. */
const intervalMs = 600_000;
const missed = 4;
const aDayMs = 86_400_000;

interface Silent {
  store: StoreConnection;
  delivery: Delivery;
  /** Runs the next sweep of a janitor, by default one interval after the last; `sinceLastMs` sets another gap. */
  sweep: (sinceLastMs?: number) => ReturnType<Janitor['sweepOnce']>;
}

/** Starts a worker that holds a request and sends no more heartbeats. */
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
      // Moves the last sweep back on the clock of Redis.
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

it('reaps a worker only after it missed more sweeps than allowed, and requeues its request', async () => {
  const { sweep, store, delivery } = await fallSilent();
  for (let count = 0; count < missed; count++) expect(await sweep()).toEqual(nothing);
  expect(await sweep()).toEqual({ reaped: ['w1'], requeued: [delivery.id], expired: [] });
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 1, running: 0, slots: 0 });
});

it('sweeps of several janitors within one interval count as one', async () => {
  const { sweep } = await fallSilent();
  for (let count = 0; count < 5 * missed; count++) expect(await sweep(1000)).toEqual(nothing);
});

it.each([
  ['an outage of Redis or of all janitors', aDayMs],
  ['a clock that was set ahead', 365 * aDayMs],
  ['a clock that was set back', -aDayMs],
])('%s counts as one sweep: a live worker renews its heartbeat before it is reaped', async (_what, sinceLastMs) => {
  const { sweep, store } = await fallSilent();
  for (let count = 1; count < missed; count++) await sweep();
  expect(await sweep(sinceLastMs)).toEqual(nothing);
  expect(await heartbeatWorker(store, identity)).toBe('alive');
  for (let count = 0; count < missed; count++) expect(await sweep()).toEqual(nothing);
});

it.each([
  ['an outage', aDayMs],
  ['a clock that was set ahead', 365 * aDayMs],
  ['a clock that was set back', -aDayMs],
])('%s does not keep a dead worker from being reaped', async (_what, sinceLastMs) => {
  const { sweep } = await fallSilent();
  await sweep(sinceLastMs);
  for (let count = 1; count < missed; count++) expect(await sweep()).toEqual(nothing);
  expect((await sweep()).reaped).toEqual(['w1']);
});

it('a worker that registers after an outage gets its full number of missed sweeps', async () => {
  const { sweep, store } = await fallSilent();
  for (let count = 0; count < missed; count++) await sweep();
  await registerWorker(store, { ...identity, workerId: 'w2' }, { state: 'ready', capacity: 8, info: {} });
  expect((await sweep()).reaped).toEqual(['w1']);
  for (let count = 1; count < missed; count++) expect(await sweep()).toEqual(nothing);
  expect((await sweep()).reaped).toEqual(['w2']);
});

it('a worker that missed as many sweeps as allowed can still store its result', async () => {
  const silent = await fallSilent();
  for (let count = 0; count < missed; count++) await silent.sweep();
  expect((await finish(silent)).at(-1)).toBe('finished');
  expect(await readRequest(silent.store, silent.delivery.id)).toMatchObject({
    request: { state: 'succeeded', attempts: 1 },
  });
});

it('rejects writes of a reaped worker before and after its request is leased again', async () => {
  const silent = await fallSilent();
  const { store, delivery } = silent;
  for (let count = 0; count <= missed; count++) await silent.sweep();
  expect(await finish(silent)).toEqual(['lost', 'lost']);
  await registerWorker(store, { ...identity, workerId: 'w2' }, { state: 'ready', capacity: 8, info: {} });
  expect(await dispatchNext(store)).toMatchObject([{ id: delivery.id }]);
  expect(await finish(silent)).toEqual(['lost', 'lost']);
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'running', outputs: [] } });
  expect(await heartbeatWorker(store, identity)).toBe('reaped');
  expect(await readStats(store, 'tiny')).toMatchObject({ slots: 8, freeSlots: 7 });
});
