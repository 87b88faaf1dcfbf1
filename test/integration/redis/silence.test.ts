/** What ran out while Redis was away: given back to who had it, as long as nobody else has. */
import {
  admitRequest,
  type Delivery,
  finishRequest,
  heartbeatWorker,
  type JobTaker,
  leaseBatch,
  openJobTaker,
  publishModel,
  readPool,
  readRequest,
  registerWorker,
  requeueStalled,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { Janitor } from '../../../apps/janitor/src/janitor.ts';

const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
const announcement = { state: 'ready', capacity: 8, ttlMs: 600_000, info: {} } as const;
const lease = { mode: 'shared', maxRows: 8, maxAttempts: 3 } as const;

interface Running {
  store: StoreConnection;
  delivery: Delivery;
  taker: JobTaker;
}

async function run(): Promise<Running> {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  await registerWorker(store, identity, announcement);
  await admitRequest(store, testEnvelope(), { queueMaxLength: 100, unserved: 'accept' });
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  const [delivery] = await taker.take(1);
  expect((await leaseBatch(store, 'tiny', [delivery!], lease)).outcomes).toEqual(['leased']);
  return { store, delivery: delivery!, taker };
}

function loseLock({ store, delivery }: Running): Promise<number> {
  return store.redis.del(store.keysOf('tiny').lock(delivery.id));
}

/** Half a pause between sweeps is more than a minute: longer than this machine may be busy with other things. */
const sweepIntervalMs = 60_000;
const halfPauseMs = 90_000;
const pauseMs = 180_000;

function createJanitor(store: StoreConnection): Janitor {
  const options = { sweepIntervalMs, leakSweepIntervalMs: 60_000, lockMs: 2 * pauseMs };
  const janitor = new Janitor({ store, log: silentLogger(), ...options });
  onTestFinished(() => janitor.stop());
  return janitor;
}

/** One that was swept once, and whose worker has said nothing since. */
async function runAndFallSilent() {
  const running = await run();
  const keys = running.store.keysOf('tiny');
  const janitor = createJanitor(running.store);
  await janitor.sweepOnce('tiny');
  await running.store.redis.del(keys.alive('w1'));
  return { running, store: running.store, keys, janitor };
}

it('delivers although the lock ran out', async () => {
  const running = await run();
  const { store, delivery } = running;
  await loseLock(running);
  expect(await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' })).toBe('finished');
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'succeeded', attempts: 1 } });
  expect(await store.queueOf('tiny').getActiveCount()).toBe(0);
});

it('delivers nothing once the job was recovered, before and after the request is queued again', async () => {
  const running = await run();
  const { store, delivery, taker } = running;
  await loseLock(running);
  await taker.recoverStalled();
  await expect.poll(() => taker.recoverStalled(), { interval: 2 }).toEqual([delivery.id]);
  const finish = () => finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' });
  expect(await finish()).toBe('lost');
  expect(await requeueStalled(store, 'tiny', delivery.id, Date.now())).toBe('requeued');
  expect(await finish()).toBe('lost');
});

it('a heartbeat takes back the locks of what the worker has, and keeps their rows', async () => {
  const running = await run();
  const { store, delivery, taker } = running;
  await loseLock(running);
  expect(await taker.renew([delivery])).toEqual([delivery.id]);
  await heartbeatWorker(store, identity, { ttlMs: 600_000, has: [delivery] });
  expect(await taker.renew([delivery])).toEqual([]);
  expect(await readPool(store, 'tiny')).toMatchObject({ busy: 1, freeRows: 7 });
});

it('a janitor that could not sweep for a while lets the living speak first', async () => {
  const { running, store, keys, janitor } = await runAndFallSilent();
  await store.redis.hincrby(keys.swept, 'atMs', -pauseMs);
  await loseLock(running);
  const nothing = { buried: [], requeued: [], expired: [] };
  for (let sweep = 0; sweep < 5; sweep++) expect(await janitor.sweepOnce('tiny')).toEqual(nothing);
  expect(await readRequest(store, running.delivery.id)).toMatchObject({ request: { state: 'running' } });
  await store.redis.hset(keys.swept, 'forgivingUntilMs', 0);
  expect((await janitor.sweepOnce('tiny')).buried).toEqual(['w1']);
});

it('after an outage that may just have cost a heartbeat, the living may speak first for as long as it was', async () => {
  const { store, keys, janitor } = await runAndFallSilent();
  await store.redis.hincrby(keys.swept, 'atMs', -halfPauseMs);
  expect((await janitor.sweepOnce('tiny')).buried).toEqual([]);
  const [atMs, forgivingUntilMs] = await store.redis.hmget(keys.swept, 'atMs', 'forgivingUntilMs');
  expect((Number(forgivingUntilMs) - Number(atMs)) / halfPauseMs).toBeCloseTo(1, 0);
  await store.redis.hset(keys.swept, 'forgivingUntilMs', Number(atMs));
  expect((await janitor.sweepOnce('tiny')).buried).toEqual(['w1']);
});

it('a janitor that is always a little late finds the dead all the same', async () => {
  const { store, keys, janitor } = await runAndFallSilent();
  await store.redis.hset(keys.swept, 'forgivingUntilMs', Date.now() - halfPauseMs);
  await store.redis.hincrby(keys.swept, 'atMs', -halfPauseMs);
  expect((await janitor.sweepOnce('tiny')).buried).toEqual(['w1']);
});

it('an outage that began before any sweep is one', async () => {
  const { store } = await run();
  const keys = store.keysOf('tiny');
  const janitor = createJanitor(store);
  expect(await store.redis.hincrby(keys.swept, 'atMs', -pauseMs)).toBeGreaterThan(0);
  // The worker that speaks first hides nothing.
  await registerWorker(store, { ...identity, workerId: 'w2' }, announcement);
  await store.redis.del(keys.alive('w1'));
  expect((await janitor.sweepOnce('tiny')).buried).toEqual([]);
  await store.redis.hset(keys.swept, 'forgivingUntilMs', 0);
  expect((await janitor.sweepOnce('tiny')).buried).toEqual(['w1']);
});

it('forgives no longer than it says, whatever clock Redis had when it began', async () => {
  const { store, keys, janitor } = await runAndFallSilent();
  // A clock that was a day ahead, or a master that was.
  const aDayAhead = Date.now() + 86_400_000;
  await store.redis.hset(keys.swept, 'atMs', aDayAhead, 'forgivingUntilMs', aDayAhead + pauseMs);
  expect((await janitor.sweepOnce('tiny')).buried).toEqual(['w1']);
});

it('forgives again after a clock was set back while it forgave', async () => {
  const { store, keys, janitor } = await runAndFallSilent();
  await store.redis.hset(keys.swept, 'forgivingUntilMs', Date.now() + 86_400_000);
  await store.redis.hincrby(keys.swept, 'atMs', -halfPauseMs);
  expect((await janitor.sweepOnce('tiny')).buried).toEqual([]);
});
