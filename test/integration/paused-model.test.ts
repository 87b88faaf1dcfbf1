/** A model that is paused under several formers: nothing more is leased by any, and all go on at once. */
import {
  admitRequest,
  createWakeups,
  finishRequest,
  listRecovered,
  openInbox,
  pauseModel,
  readPool,
  registerWorker,
  resumeModel,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { ModelFormer } from '../../apps/batch-former/src/model-former.ts';

const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };

async function openServed(capacity: number): Promise<StoreConnection> {
  const store = openTestStore();
  await registerWorker(store, identity, { state: 'ready', capacity, ttlMs: 600_000, info: {} });
  return store;
}

function createFormer(store: StoreConnection): ModelFormer {
  const former = new ModelFormer({
    store,
    model: 'tiny',
    wakeups: createWakeups(store),
    policy: { maxSize: 8, timeoutMs: 0, isBatching: true },
    lookahead: 2,
    maxAttempts: 3,
    lockMs: 60_000,
    heartbeatMs: 1000,
    log: silentLogger(),
  });
  onTestFinished(() => former.stop());
  return former;
}

async function submit(store: StoreConnection, priority = 5): Promise<string> {
  const envelope = testEnvelope({ priority });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

/** Waits for the next batch that the worker gets. */
async function nextBatch(store: StoreConnection): Promise<{ id: string; token: string }[]> {
  const inbox = openInbox(store, identity);
  const message = await inbox.next(10);
  inbox.close();
  if (message?.type !== 'run') throw new Error(`got ${message?.type}, expected a batch`);
  return message.requests.map(({ envelope, token }) => ({ id: envelope.id, token }));
}

it('has formers give back what they hold, and lease nothing though rows are free', async () => {
  const store = await openServed(1);
  const formers = [createFormer(store), createFormer(store)];
  const ids = [await submit(store), await submit(store), await submit(store)];
  await formers[0]!.runOnce();
  const [running] = await nextBatch(store);
  await pauseModel(store, 'tiny');
  for (const former of formers) await former.runOnce();
  expect(formers.map(({ held }) => held)).toEqual([0, 0]);
  await finishRequest(store, 'tiny', 'w1', running!, { state: 'succeeded' });
  for (const former of formers) await former.runOnce();
  expect(await readPool(store, 'tiny')).toMatchObject({ idle: 1, queued: 2, takeable: 2, isPaused: true });
  expect(await store.redis.llen(store.keysOf('tiny').inbox('w1'))).toBe(0);
  expect(await listRecovered(store, 'tiny')).toEqual([]);
  await resumeModel(store, 'tiny');
  await formers[1]!.runOnce();
  expect((await nextBatch(store)).map(({ id }) => id)).toEqual([ids[1]]);
});

it('goes on when it is resumed', async () => {
  const store = await openServed(8);
  await pauseModel(store, 'tiny');
  const former = createFormer(store);
  await former.start();
  const id = await submit(store);
  await former.runOnce();
  const batch = nextBatch(store);
  await resumeModel(store, 'tiny');
  expect((await batch).map((request) => request.id)).toEqual([id]);
});
