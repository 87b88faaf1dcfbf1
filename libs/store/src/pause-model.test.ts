/** A paused model: takes in, starts nothing, and lets what runs go on. */
import { allKeys, openTestStore, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import {
  admitRequest,
  createWakeups,
  type Delivery,
  expireRequests,
  finishRequest,
  readStats,
  leaseBatch,
  openJobTaker,
  pauseModel,
  readPool,
  readRequest,
  registerWorker,
  resumeModel,
  type StoreConnection,
} from './index.ts';

const admission = { queueMaxLength: 100, unserved: 'accept' } as const;
const lease = { mode: 'shared', maxRows: 8, maxAttempts: 3 } as const;

async function openServed(): Promise<StoreConnection> {
  const store = openTestStore();
  const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 8, ttlMs: 60_000, info: {} });
  return store;
}

async function submit(store: StoreConnection): Promise<string> {
  const envelope = testEnvelope();
  await admitRequest(store, envelope, admission);
  return envelope.id;
}

async function take(store: StoreConnection, count = 1): Promise<Delivery[]> {
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  return taker.take(count);
}

it('gives nothing out, keeps the order, and goes on where it was when resumed', async () => {
  const store = await openServed();
  const ids = [await submit(store), await submit(store)];
  await pauseModel(store, 'tiny');
  ids.push(await submit(store));
  expect(await take(store, 3)).toEqual([]);
  expect(await readPool(store, 'tiny')).toMatchObject({ isPaused: true, queued: 3 });
  await resumeModel(store, 'tiny');
  expect(await readPool(store, 'tiny')).toMatchObject({ isPaused: false, queued: 3 });
  expect((await take(store, 3)).map(({ id }) => id)).toEqual(ids);
});

it('leases nothing that a former had taken before, and lets what runs end', async () => {
  const store = await openServed();
  await submit(store);
  const held = await submit(store);
  const [running, waiting] = await take(store, 2);
  await leaseBatch(store, 'tiny', [running!], lease);
  await pauseModel(store, 'tiny');
  for (const mode of ['shared', 'exclusive'] as const)
    expect(await leaseBatch(store, 'tiny', [waiting!], { ...lease, mode })).toEqual({
      workerId: undefined,
      outcomes: ['waiting'],
    });
  expect(await finishRequest(store, 'tiny', 'w1', running!, { state: 'succeeded' })).toBe('finished');
  await resumeModel(store, 'tiny');
  expect(await leaseBatch(store, 'tiny', [waiting!], lease)).toEqual({ workerId: 'w1', outcomes: ['leased'] });
  expect(waiting!.id).toBe(held);
});

it('counts as served by nobody, with the position as it is', async () => {
  const store = await openServed();
  await submit(store);
  const id = await submit(store);
  await pauseModel(store, 'tiny');
  expect(await readRequest(store, id)).toMatchObject({ request: { isPossible: false, queuePosition: 1 } });
  const refuse = { ...admission, unserved: 'refuse' } as const;
  expect(await admitRequest(store, testEnvelope(), refuse)).toEqual({ status: 'unserved' });
  await resumeModel(store, 'tiny');
  expect(await readRequest(store, id)).toMatchObject({ request: { isPossible: true, queuePosition: 1 } });
});

it('does not stop the clock of deadlines', async () => {
  const store = await openServed();
  const id = await submit(store);
  await pauseModel(store, 'tiny');
  expect(await expireRequests(store, 'tiny', Date.now() + 601_000)).toEqual([id]);
});

it('is said twice without a difference, leaves no key, and wakes formers when it is over', async () => {
  const store = await openServed();
  await submit(store);
  const ownKeys = async (): Promise<string[]> =>
    (await allKeys(store)).filter((key) => !key.startsWith(store.keysOf('tiny').job('')));
  const before = await ownKeys();
  const wakeups = createWakeups(store);
  onTestFinished(() => wakeups.close());
  const woken = new Promise<void>((resolve) => void wakeups.listen('tiny', resolve));
  await pauseModel(store, 'tiny');
  await pauseModel(store, 'tiny');
  expect((await readStats(store, 'tiny')).isPaused).toBe(true);
  await resumeModel(store, 'tiny');
  await resumeModel(store, 'tiny');
  await woken;
  expect((await readStats(store, 'tiny')).isPaused).toBe(false);
  expect(await ownKeys()).toEqual(before);
});
