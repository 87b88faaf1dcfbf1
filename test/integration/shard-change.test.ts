/** A worker that goes from one shard of its model to another, against a real queue. */
import { createRequestId } from '@darkroom/core';
import {
  dispatchRequests,
  publishModel,
  readDispatchable,
  readRequest,
  readStats,
  readWorkers,
  sendWorker,
  spreadModel,
  type StoreConnection,
  sweepWorkers,
  withdrawWorker,
} from '@darkroom/store';
import { allKeys, openTestStore } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import { type Bench, card, openBench, stateOf, submit } from './worker-bench.ts';

const other = 'tiny~1';

async function openSpread(options: Parameters<typeof openBench>[0] = {}): Promise<Bench> {
  const store = options.store ?? openTestStore();
  await publishModel(store, card);
  await spreadModel(store, 'tiny', { count: 2, known: ['tiny'] });
  const bench = openBench({ ...options, store });
  await bench.worker.start();
  return bench;
}

function submitTo(store: StoreConnection, shard: string): Promise<string> {
  const id = createRequestId({ model: shard, nowMs: Date.now(), owner: '', secret: 'test' });
  return submit(store, { id });
}

async function leaseIn(store: StoreConnection, shard: string, id: string): Promise<string | undefined> {
  const lease = { workerId: 'w1', isExclusive: false, requestIds: [id] };
  return (await dispatchRequests(store, shard, [lease]))[0]?.status;
}

function send(store: StoreConnection, to: string, isPatient = false): Promise<void> {
  return sendWorker(store, { workerId: 'w1', from: to === other ? 'tiny' : other, to, isPatient });
}

/** Workers and free slots of both shards. */
async function places(store: StoreConnection): Promise<[number, number][]> {
  const stats = await Promise.all(['tiny', other].map((shard) => readStats(store, shard)));
  return stats.map(({ workers, freeSlots }) => [workers.idle + workers.busy + workers.asleep, freeSlots]);
}

async function arrival(store: StoreConnection, shard: string): Promise<void> {
  const expected =
    shard === other
      ? [
          [0, 0],
          [1, 4],
        ]
      : [
          [1, 4],
          [0, 0],
        ];
  await vi.waitFor(async () => expect(await places(store)).toEqual(expected), { timeout: 10_000 });
}

it('goes when it has nothing, works there, and comes back; nothing of it stays behind', async () => {
  const { store, executor, worker } = await openSpread();
  for (const shard of [other, 'tiny', other]) {
    await send(store, shard);
    await arrival(store, shard);
    const id = await submitTo(store, shard);
    expect(await leaseIn(store, shard, id)).toBe('leased');
    await vi.waitFor(() => expect(executor.submitted).toHaveLength(1));
    executor.complete(executor.submitted.splice(0)[0]!.id);
    await vi.waitFor(async () => expect(await stateOf(store, id)).toBe('succeeded'));
    await worker.beatOnce();
  }
  const left = (await allKeys(store)).filter((key) => /\{tiny\}:(?:workers|worker|inbox|leases|room)/.test(key));
  expect(left).toEqual([]);
  const result = await readRequest(store, await submitTo(store, other));
  expect(result).toMatchObject({ status: 'found', request: { model: 'tiny', queuePosition: 0 } });
});

it('with something to do it stays, and takes more', async () => {
  const { store, executor } = await openSpread();
  const first = await submitTo(store, 'tiny');
  await leaseIn(store, 'tiny', first);
  await send(store, other);
  await vi.waitFor(() => expect(executor.submitted).toHaveLength(1));
  const second = await submitTo(store, 'tiny');
  await vi.waitFor(async () => expect(await leaseIn(store, 'tiny', second)).toBe('leased'));
  expect(await places(store)).toEqual([
    [1, 2],
    [0, 0],
  ]);
});

it('or ends that first, if it is to, and takes no more meanwhile', async () => {
  const { store, executor } = await openSpread();
  const first = await submitTo(store, 'tiny');
  await leaseIn(store, 'tiny', first);
  await vi.waitFor(() => expect(executor.submitted).toHaveLength(1));
  await send(store, other, true);
  await vi.waitFor(async () =>
    expect(await places(store)).toEqual([
      [1, 0],
      [0, 0],
    ]),
  );
  const second = await submitTo(store, 'tiny');
  expect(await leaseIn(store, 'tiny', second)).toBe('waiting');
  expect((await readDispatchable(store, 'tiny', { maxWorkers: 8, maxRequests: 8 })).workers).toEqual([]);
  executor.complete(executor.submitted[0]!.id);
  await arrival(store, other);
  expect(await stateOf(store, first)).toBe('succeeded');
  expect(await stateOf(store, second)).toBe('queued');
});

it('a lease that is faster than its going is not lost', async () => {
  const { store, executor } = await openSpread();
  const ids = await Promise.all(Array.from({ length: 4 }, () => submitTo(store, 'tiny')));
  const [, ...leased] = await Promise.all([send(store, other), ...ids.map((id) => leaseIn(store, 'tiny', id))]);
  await vi.waitFor(() => expect(executor.submitted).toHaveLength(leased.filter((each) => each === 'leased').length));
  for (const { id } of executor.submitted) executor.complete(id);
  await vi.waitFor(async () => {
    for (const [at, id] of ids.entries())
      expect(await stateOf(store, id)).toBe(leased[at] === 'leased' ? 'succeeded' : 'queued');
  });
});

it('one that an operator drains while it ends what it has stays drained, with its room, though Redis refuses that once', async () => {
  const { store, executor } = await openSpread();
  const first = await submitTo(store, 'tiny');
  await leaseIn(store, 'tiny', first);
  await vi.waitFor(() => expect(executor.submitted).toHaveLength(1));
  await send(store, other, true);
  await vi.waitFor(async () =>
    expect(await places(store)).toEqual([
      [1, 0],
      [0, 0],
    ]),
  );
  await withdrawWorker(store, { model: 'tiny', workerId: 'w1' });
  const script = 'workers/register-worker';
  const register = Reflect.get(store.redis, script) as (...words: unknown[]) => Promise<unknown>;
  const refuse = vi.fn<(...words: unknown[]) => Promise<unknown>>((...words) => {
    // Once more that it leaves, and then that it stays.
    if (refuse.mock.calls.length === 1) return register.apply(store.redis, words);
    Object.assign(store.redis, { [script]: register });
    return Promise.reject(new Error('READONLY You cannot write against a read only replica.'));
  });
  Object.assign(store.redis, { [script]: refuse });
  executor.complete(executor.submitted[0]!.id);
  const drained = { workerId: 'w1', state: 'draining', capacity: 4, freeSlots: 4 };
  await vi.waitFor(async () => expect(await readWorkers(store, 'tiny', 9)).toMatchObject([drained]), {
    timeout: 10_000,
  });
  expect(refuse).toHaveBeenCalledTimes(2);
});

it('taken for dead on the way, it goes on where it is', async () => {
  const { store, executor, worker } = await openSpread();
  const first = await submitTo(store, 'tiny');
  await leaseIn(store, 'tiny', first);
  await vi.waitFor(() => expect(executor.submitted).toHaveLength(1));
  await send(store, other, true);
  await vi.waitFor(async () =>
    expect(await places(store)).toEqual([
      [1, 0],
      [0, 0],
    ]),
  );
  for (let sweep = 0; sweep < 3; sweep++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await stateOf(store, first)).toBe('queued');
  await worker.beatOnce();
  expect(executor.canceled).toHaveLength(1);
  executor.emit([{ type: 'request-done', requestId: executor.canceled[0]! }]);
  await arrival(store, other);
  expect(await stateOf(store, first)).toBe('queued');
});

it('asleep, it goes and sleeps there', async () => {
  const bench = await openSpread({ sleepAfterMs: 0 });
  const { store, worker } = bench;
  await worker.beatOnce();
  await vi.waitFor(async () => expect((await readStats(store, 'tiny')).workers.asleep).toBe(1), { timeout: 10_000 });
  await send(store, other);
  await vi.waitFor(async () => expect((await readStats(store, other)).workers.asleep).toBe(1), { timeout: 10_000 });
});

it('a stop on the way waits for nothing', async () => {
  const { store, executor, worker } = await openSpread();
  const first = await submitTo(store, 'tiny');
  await leaseIn(store, 'tiny', first);
  await vi.waitFor(() => expect(executor.submitted).toHaveLength(1));
  await send(store, other, true);
  await vi.waitFor(async () =>
    expect(await places(store)).toEqual([
      [1, 0],
      [0, 0],
    ]),
  );
  await worker.stop();
  expect(await stateOf(store, first)).toBe('queued');
  expect(await places(store)).toEqual([
    [0, 0],
    [0, 0],
  ]);
});

it('what is said to it where it is no more is heard by nobody', async () => {
  const { store } = await openSpread();
  await send(store, other);
  await arrival(store, other);
  await send(store, other);
  expect(await store.redis.exists(store.keysOf('tiny').inbox('w1'))).toBe(0);
});
