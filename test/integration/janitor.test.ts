/** The janitor against a real queue: what dead processes leave is put right, once, whoever sweeps. */
import { once } from 'node:events';
import type { Clock, RequestEnvelope } from '@darkroom/core';
import {
  admitRequest,
  type Delivery,
  leaseBatch,
  openJobTaker,
  publishModel,
  readEvents,
  readPool,
  readRequest,
  registerWorker,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Janitor } from '../../apps/janitor/src/janitor.ts';

const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
const announcement = { state: 'ready', capacity: 8, ttlMs: 600_000, info: {} } as const;
/** For what takes a moment. */
const patience = 10_000;
const lease = { mode: 'shared', maxRows: 8, maxAttempts: 3 } as const;

async function openStore(): Promise<StoreConnection> {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  return store;
}

function createJanitor(store: StoreConnection, clock?: Clock): Janitor {
  // A second between two sweeps may pass here as well, and is forgiven, but not for longer than we wait.
  const options = { store, log: silentLogger(), sweepIntervalMs: 2, leakSweepIntervalMs: 60_000, lockMs: 1000 };
  const janitor = new Janitor(clock ? { ...options, clock } : options);
  onTestFinished(() => janitor.stop());
  return janitor;
}

async function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<string> {
  const envelope = testEnvelope(overrides);
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

async function take(store: StoreConnection, lockMs = 60_000): Promise<Delivery> {
  const taker = openJobTaker(store, 'tiny', { lockMs, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  const [delivery] = await taker.take(1);
  return delivery!;
}

async function run(store: StoreConnection, workerId = 'w1'): Promise<string> {
  await registerWorker(store, { ...identity, workerId }, announcement);
  const id = await submit(store);
  const { outcomes } = await leaseBatch(store, 'tiny', [await take(store)], lease);
  expect(outcomes).toEqual(['leased']);
  return id;
}

it("requeues a dead worker's requests first in line, with the attempt counted", async () => {
  const store = await openStore();
  const id = await run(store);
  await submit(store);
  const janitor = createJanitor(store);
  expect(await janitor.sweepOnce('tiny')).toEqual({ buried: [], requeued: [], expired: [] });
  await store.redis.del(store.keysOf('tiny').alive('w1'));
  await vi.waitFor(async () => expect((await janitor.sweepOnce('tiny')).buried).toEqual(['w1']), patience);
  await vi.waitFor(async () => {
    await janitor.sweepOnce('tiny');
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', queuePosition: 0, attempts: 1 } });
  }, patience);
  expect(await readPool(store, 'tiny')).toMatchObject({ loading: 0, idle: 0, busy: 0, queued: 2 });
});

it('requeues what a former held when it died', async () => {
  const store = await openStore();
  const id = await submit(store);
  expect((await take(store, 1)).id).toBe(id);
  const janitor = createJanitor(store);
  await vi.waitFor(async () => {
    await janitor.sweepOnce('tiny');
    expect(await store.queueOf('tiny').getWaitingCount()).toBe(1);
  }, patience);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  expect((await readEvents(store, id, { after: 0 })).map(({ type }) => type)).toEqual(['queued']);
});

it('says nothing of what a former has chosen and takes while it looks', async () => {
  const store = await openStore();
  const id = await submit(store);
  await take(store);
  vi.spyOn(store.queueOf('tiny'), 'getRanges').mockResolvedValue([id]);
  expect(await createJanitor(store).sweepOnce('tiny')).toEqual({ buried: [], requeued: [], expired: [] });
});

it('a request that loses every worker ends as failed, alone at last, and can be found', async () => {
  const store = await openStore();
  const id = await run(store, 'w1');
  const janitor = createJanitor(store);
  const seen: string[] = [];
  for (const [attempt, workerId] of ['w1', 'w2', 'w3'].entries()) {
    await store.redis.del(store.keysOf('tiny').alive(workerId));
    await vi.waitFor(async () => {
      await janitor.sweepOnce('tiny');
      expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: attempt + 1 } });
    }, patience);
    await registerWorker(store, { ...identity, workerId: `w${attempt + 2}` }, announcement);
    const delivery = await take(store);
    const { outcomes } = await leaseBatch(store, 'tiny', [delivery], lease);
    seen.push(...outcomes);
    if (outcomes[0] === 'alone')
      seen.push(...(await leaseBatch(store, 'tiny', [delivery], { ...lease, mode: 'exclusive' })).outcomes);
  }
  expect(seen).toEqual(['leased', 'alone', 'leased', 'exhausted']);
  expect(await readRequest(store, id)).toMatchObject({
    request: {
      state: 'failed',
      error: { code: 'worker_lost', message: expect.stringContaining('3 attempts') as string },
    },
  });
});

it('expires what is overdue by its clock, once, however many janitors sweep', async () => {
  const store = await openStore();
  const now = Date.now();
  const overdue = await submit(store, { createdAtMs: now, startDeadlineMs: now + 1000 });
  await submit(store, { createdAtMs: now });
  const janitors = Array.from({ length: 3 }, () => createJanitor(store, { now: () => now + 1000 }));
  const results = await Promise.all(janitors.map((janitor) => janitor.sweepOnce('tiny')));
  expect(results.flatMap(({ expired }) => expired)).toEqual([overdue]);
  expect((await readEvents(store, overdue, { after: 0 })).map(({ type }) => type)).toEqual(['queued', 'expired']);
  expect(await store.queueOf('tiny').getPrioritizedCount()).toBe(1);
});

it('gives keys their TTL back and removes what dead workers left', async () => {
  const store = await openStore();
  const keys = store.keysOf('tiny');
  const id = await run(store);
  await store.redis.persist(keys.events(id));
  await store.redis.persist(keys.request(id));
  await store.redis.rpush(keys.inbox('long-gone'), '{}');
  await createJanitor(store).sweepLeaksOnce();
  expect(await store.redis.pttl(keys.events(id))).toBeGreaterThan(0);
  expect(await store.redis.pttl(keys.request(id))).toBeGreaterThan(0);
  expect(await store.redis.exists(keys.inbox('long-gone'))).toBe(0);
  expect(await store.redis.exists(keys.inbox('w1'), keys.leases('w1'), keys.worker('w1'))).toBe(3);
});

it('a model whose server does not answer keeps no other waiting', async () => {
  const store = openTestStore();
  for (const model of ['stuck', 'tiny']) {
    await publishModel(store, { id: model } as never);
    await registerWorker(store, { ...identity, model }, announcement);
  }
  const redis = store.redis as unknown as Record<string, (base: string, ...values: unknown[]) => Promise<unknown>>;
  const bury = redis['bury-workers']!.bind(redis);
  const over = new AbortController();
  const silence = once(over.signal, 'abort').then(() => ['forgiving']);
  redis['bury-workers'] = (base, ...values) => (base === store.keysOf('stuck').base ? silence : bury(base, ...values));
  await store.redis.del(store.keysOf('tiny').alive('w1'));
  await createJanitor(store).start();
  await expect.poll(() => store.redis.exists(store.keysOf('tiny').worker('w1'))).toBe(0);
  over.abort();
});
