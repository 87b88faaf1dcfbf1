/** A model with several shards: its registry, stats, limits and sweeps. */
import { createRequestId } from '@darkroom/core';
import { openTestStore, seedRequest, seedRunning, seedWorker, testEnvelope, writeNow } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import {
  admitRequest,
  type AdmitRequestOptions,
  findWorkers,
  LeakSweeper,
  listDead,
  listModels,
  listShards,
  listWorkers,
  pauseModel,
  publishModel,
  readDispatchable,
  readStats,
  readCounters,
  readWorkers,
  resumeModel,
  retryRequest,
  setShardCount,
  type StoreConnection,
  sumEnded,
  sumStats,
  sumCounters,
  takeOutbox,
} from '../index.ts';

const shards = ['tiny', 'tiny~1', 'tiny~2'];

async function openSpread(): Promise<StoreConnection> {
  const store = openTestStore();
  for (const id of ['tiny', 'small']) await publishModel(store, { id, kind: 'text' } as never);
  await setShardCount(store, 'tiny', { count: 3, known: ['tiny'] });
  return store;
}

function idIn(shard: string, owner = ''): string {
  return createRequestId({ model: shard, owner, nowMs: Date.now(), secret: 'test' });
}

async function shardsOf(store: StoreConnection): Promise<Record<string, readonly string[]>> {
  return Object.fromEntries((await listModels(store)).map((model) => [model.id, model.shards]));
}

describe('the registry', () => {
  it('lists models, the shards open for new requests, and closed shards', async () => {
    const store = await openSpread();
    expect(await shardsOf(store)).toEqual({ small: ['small'], tiny: shards });
    await setShardCount(store, 'tiny', { count: 1, known: shards });
    expect(await shardsOf(store)).toEqual({ small: ['small'], tiny: ['tiny'] });
    expect((await listShards(store)).toSorted()).toEqual(['small', ...shards]);
    await setShardCount(store, 'tiny', { count: 2, known: shards });
    // A worker publishes the card again.
    await publishModel(store, { id: 'tiny', kind: 'text' } as never);
    expect((await shardsOf(store))['tiny']).toEqual(['tiny', 'tiny~1']);
  });

  it('sorts more than ten shards by number', async () => {
    const store = await openSpread();
    await setShardCount(store, 'small', { count: 12, known: ['small'] });
    expect((await shardsOf(store))['small']?.map((shard) => shard.slice(5))).toEqual([
      '',
      ...Array.from({ length: 11 }, (_shard, at) => `~${at + 1}`),
    ]);
  });
});

it('pauses and resumes all shards of a model, including one that is added meanwhile', async () => {
  const store = await openSpread();
  await pauseModel(store, 'tiny');
  await setShardCount(store, 'tiny', { count: 4, known: shards });
  const all = [...shards, 'tiny~3'];
  for (const [at, shard] of all.entries()) {
    await seedWorker(store, { model: shard, workerId: `w${at}` });
    await seedRequest(store, { id: idIn(shard) });
  }
  const next = async () =>
    Promise.all(
      all.map(
        async (shard) => (await readDispatchable(store, shard, { maxWorkers: 1, maxRequests: 1 })).requests.length,
      ),
    );
  expect(await next()).toEqual([0, 0, 0, 0]);
  await resumeModel(store, 'tiny');
  expect(await next()).toEqual([1, 1, 1, 1]);
});

it('lists the workers of all shards, and sums their stats', async () => {
  const store = await openSpread();
  const first = await seedRunning(store, { id: idIn('tiny~2'), worker: { model: 'tiny~2', workerId: 'w2' } });
  const error = { code: 'internal', message: 'x' };
  const webhook = { url: 'https://example.com', events: ['completed' as const], progressIntervalMs: 0 };
  await seedWorker(store, { workerId: 'w0' });
  await seedRequest(store, { id: idIn('tiny~1'), webhook });
  await seedRequest(store, { id: idIn('tiny') });
  expect(await listWorkers(store, 'tiny')).toEqual([
    { shard: 'tiny', workerId: 'w0' },
    { shard: 'tiny~2', workerId: 'w2' },
  ]);
  expect(await findWorkers(store, 'w2')).toEqual([{ shard: 'tiny~2', workerId: 'w2' }]);
  expect(await readWorkers(store, 'tiny~2', 9)).toMatchObject([{ model: 'tiny', workerId: 'w2' }]);
  const total = async () => sumStats(await Promise.all(shards.map((shard) => readStats(store, shard))));
  expect(await total()).toMatchObject({
    model: 'tiny',
    workers: { idle: 1, busy: 1 },
    slots: 16,
    freeSlots: 15,
    queued: 2,
    running: 1,
    shards: 3,
    waitingShards: 2,
  });
  await writeNow(store, first.worker, { type: 'end', delivery: first.delivery, end: { state: 'failed', error } });
  const counters = sumCounters(await Promise.all(shards.map((shard) => readCounters(store, shard))));
  const countOf = (state: string) =>
    counters.ends.find((end) => end.state === state)!.counts.reduce((sum, n) => sum + n, 0);
  expect([countOf('failed'), countOf('succeeded')]).toEqual([1, 0]);
  expect(
    sumEnded([
      { succeeded: 1, failed: 2, canceled: 3, expired: 4 },
      { succeeded: 1, failed: 1, canceled: 1, expired: 1 },
    ]),
  ).toEqual({ succeeded: 2, failed: 3, canceled: 4, expired: 5 });
  expect(await listDead(store, 'tiny~2', 9)).toMatchObject([{ id: first.delivery.id, model: 'tiny' }]);
  expect(await takeOutbox(store, 'tiny~1', { limit: 9, reclaimAfterMs: 0 })).toEqual([]);
});

it('retries a failed request in its shard', async () => {
  const store = await openSpread();
  const { worker, delivery } = await seedRunning(store, { id: idIn('tiny~1'), worker: { model: 'tiny~1' } });
  const error = { code: 'internal', message: 'x' };
  await writeNow(store, worker, { type: 'end', delivery, end: { state: 'failed', error } });
  const result = await retryRequest(store, delivery.id);
  expect(result).toMatchObject({ status: 'retried', id: expect.stringMatching(/^tiny~1-/), isNew: true });
});

it('sweeps the keys of all shards, and adds up their sizes per model', async () => {
  const store = await openSpread();
  for (const shard of shards) await seedRequest(store, { id: idIn(shard) });
  await store.redis.set(store.keysOf('tiny~1').leases('missing'), 'x');
  const sweeper = new LeakSweeper(store);
  let found = await sweeper.sweepPage();
  const deleted = [...found.deleted];
  while (found.sizes === undefined) {
    found = await sweeper.sweepPage();
    deleted.push(...found.deleted);
  }
  expect(deleted).toEqual([store.keysOf('tiny~1').leases('missing')]);
  expect(found.sizes.filter(({ kind }) => kind === 'request')).toMatchObject([{ model: 'tiny', keys: 3 }]);
});

function admit(store: StoreConnection, shard: string, options: Partial<AdmitRequestOptions>) {
  const empty = testEnvelope({ id: idIn(shard, 'alice'), owner: 'alice', input: '' });
  const envelope = { ...empty, input: 'x'.repeat(1000 - JSON.stringify(empty).length) };
  const otherShards = [...shards, 'small'].filter((other) => other !== shard);
  return admitRequest(store, envelope, { queueMaxLength: 9, unserved: 'accept', otherShards, ...options });
}

describe('limits of an owner', () => {
  it('apply the byte budget to the sum over all shards', async () => {
    const store = await openSpread();
    const options = { ownerMaxBytes: 42_000 };
    const outcomes = [];
    for (const shard of ['tiny', 'tiny', 'tiny', 'tiny~1', 'tiny~2', 'tiny~2', 'tiny~1'])
      outcomes.push(await admit(store, shard, options));
    expect(outcomes.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 6 }, () => 'admitted'),
      'over-budget',
    ]);
    expect(outcomes.at(-1)).toEqual({ status: 'over-budget', bytes: 42_000 });
  });

  it('apply the limit of open requests to the sum over all shards', async () => {
    const store = await openSpread();
    const options = { openRequestsMax: 2 };
    for (const shard of ['tiny', 'tiny~1']) expect((await admit(store, shard, options)).status).toBe('admitted');
    expect(await admit(store, 'tiny~2', options)).toEqual({ status: 'limited', open: 2 });
  });
});
