/** A model that is paused under several formers: nothing more is leased by any, and all go on at once. */
import {
  admitRequest,
  createEventHub,
  type Delivery,
  dispatchRequests,
  openInbox,
  pauseModel,
  publishModel,
  readStats,
  registerWorker,
  resumeModel,
  type StoreConnection,
  writeBatch,
} from '@darkroom/store';
import { openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { BatchFormer } from '../../apps/batch-former/src/batch-former.ts';

const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };

async function openServed(capacity: number): Promise<StoreConnection> {
  const store = openTestStore();
  await registerWorker(store, identity, { state: 'ready', capacity, info: {} });
  return store;
}

function createFormer(store: StoreConnection): BatchFormer {
  const wakeups = createEventHub(store);
  const former = new BatchFormer({
    store,
    wakeups,
    policy: { maxSize: 8, timeoutMs: 0, isBatching: true, maxAttempts: 3, lookahead: 2 },
    // Nothing here happens because time passed.
    slowTickMs: 3_600_000,
    log: silentLogger(),
  });
  onTestFinished(async () => {
    await former.stop();
    wakeups.close();
  });
  return former;
}

async function submit(store: StoreConnection, priority = 5): Promise<string> {
  const envelope = testEnvelope({ priority });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

/** What the worker has been given and has not been told of before. */
function openDeliveries(store: StoreConnection): () => Promise<Delivery[]> {
  const inbox = openInbox(store, identity);
  onTestFinished(() => inbox.close());
  return async () => {
    const messages = await inbox.next(10);
    const leased = messages.flatMap((message) => (message.type === 'run' ? message.requests : []));
    return leased.map(({ envelope, token }) => ({ id: envelope.id, token }));
  };
}

it('is leased nothing by any former though slots are free, and goes on where it was', async () => {
  const store = await openServed(1);
  const formers = [createFormer(store), createFormer(store)];
  const ids = [await submit(store), await submit(store), await submit(store)];
  const next = openDeliveries(store);
  await formers[0]!.runOnce('tiny');
  const [running] = await next();
  await pauseModel(store, 'tiny');
  await writeBatch(store, identity, [{ type: 'end', delivery: running!, end: { state: 'canceled' } }], { batch: 1 });
  for (const former of formers) await former.runOnce('tiny');
  // Nor by one that has looked before.
  const lease = { workerId: 'w1', isExclusive: false, requestIds: [ids[1]!] };
  expect(await dispatchRequests(store, 'tiny', [lease])).toEqual([{ status: 'waiting' }]);
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1 }, queued: 2, running: 0, isPaused: true });
  await resumeModel(store, 'tiny');
  await formers[1]!.runOnce('tiny');
  expect((await next()).map(({ id }) => id)).toEqual([ids[1]]);
});

it('goes on when it is resumed', async () => {
  const store = await openServed(8);
  await pauseModel(store, 'tiny');
  await publishModel(store, { id: 'tiny' } as never);
  const former = createFormer(store);
  await former.start();
  const id = await submit(store);
  await former.runOnce('tiny');
  const batch = openDeliveries(store)();
  await resumeModel(store, 'tiny');
  expect((await batch).map((request) => request.id)).toEqual([id]);
});
