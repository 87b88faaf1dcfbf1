/** A paused model with several batch-formers: none leases its requests until it is resumed. */
import {
  type Delivery,
  dispatchRequests,
  openInbox,
  pauseModel,
  publishModel,
  readStats,
  resumeModel,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore, seedWorker, writeNow } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { openFormer } from './open-former.ts';
import { submit } from './worker-bench.ts';

const identity = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };

async function openServed(capacity: number): Promise<StoreConnection> {
  const store = openTestStore();
  await seedWorker(store, { capacity });
  return store;
}

/** Returns a function that reads new leases from the worker's inbox. */
function openDeliveries(store: StoreConnection): () => Promise<Delivery[]> {
  const inbox = openInbox(store, () => identity);
  onTestFinished(() => inbox.close());
  return async () => {
    const messages = await inbox.next(10);
    const leased = messages.flatMap((message) => (message.type === 'run' ? message.requests : []));
    return leased.map(({ envelope, token }) => ({ id: envelope.id, token }));
  };
}

it('no batch-former leases requests of a paused model, and leasing continues in order after resume', async () => {
  const store = await openServed(1);
  const formers = [openFormer(store), openFormer(store)];
  const ids = [await submit(store), await submit(store), await submit(store)];
  const next = openDeliveries(store);
  await formers[0]!.runOnce('tiny');
  const [running] = await next();
  await pauseModel(store, 'tiny');
  await writeNow(store, identity, { type: 'end', delivery: running!, end: { state: 'canceled' } });
  for (const former of formers) await former.runOnce('tiny');
  // This also holds for a batch-former whose snapshot is older than the pause.
  const lease = { workerId: 'w1', isExclusive: false, requestIds: [ids[1]!] };
  expect(await dispatchRequests(store, 'tiny', [lease])).toEqual([{ status: 'waiting' }]);
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1 }, queued: 2, running: 0, isPaused: true });
  await resumeModel(store, 'tiny');
  await formers[1]!.runOnce('tiny');
  expect((await next()).map(({ id }) => id)).toEqual([ids[1]]);
});

it('a resume wakes the batch-former', async () => {
  const store = await openServed(8);
  await pauseModel(store, 'tiny');
  await publishModel(store, { id: 'tiny' } as never);
  const { former } = openFormer(store);
  await former.start();
  const id = await submit(store);
  await former.runOnce('tiny');
  const batch = openDeliveries(store)();
  await resumeModel(store, 'tiny');
  expect((await batch).map((request) => request.id)).toEqual([id]);
});
