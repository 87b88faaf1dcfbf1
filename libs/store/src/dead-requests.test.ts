/** Failed requests in the hands of an operator: found, retried once, dropped. */
import { createRequestId, type RequestEnvelope } from '@darkroom/core';
import { allKeys, openTestStore, testEnvelope } from '@darkroom/testing';
import { expect, it } from 'vitest';
import {
  admitRequest,
  closeJob,
  type Delivery,
  dropRequest,
  finishRequest,
  leaseBatch,
  listDead,
  openJobTaker,
  readEvents,
  readRequest,
  readStats,
  readTrace,
  registerWorker,
  retryRequest,
  type StoreConnection,
  takeOutbox,
  writeCheckpoint,
  writeOutput,
} from './index.ts';

const error = { code: 'internal', message: 'the engine failed' } as const;

async function take(store: StoreConnection): Promise<Delivery | undefined> {
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  const [delivery] = await taker.take(1);
  await taker.close();
  return delivery;
}

/** Seeds a running request with all that one may have. */
async function run(
  store: StoreConnection,
  overrides: Partial<RequestEnvelope> = {},
  promptless?: RequestEnvelope,
): Promise<Delivery> {
  const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 8, ttlMs: 60_000, info: {} });
  const envelope = testEnvelope(overrides);
  await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'accept', weight: 3, promptless });
  const delivery = (await take(store))!;
  await leaseBatch(store, 'tiny', [delivery], { mode: 'shared', maxRows: 8, maxAttempts: 3 });
  await writeCheckpoint(store, 'tiny', delivery, 0, Buffer.from('latents'));
  const data = Buffer.from('png');
  const output = { index: 0, contentType: 'image/png', data, facts: {}, chunkBytes: 3, timestampMs: 1 };
  await writeOutput(store, 'tiny', delivery, output);
  return delivery;
}

async function fail(store: StoreConnection, overrides?: Partial<RequestEnvelope>): Promise<string> {
  const delivery = await run(store, overrides);
  await finishRequest(store, 'tiny', 'w1', delivery, { state: 'failed', error });
  return delivery.id;
}

const newId = (): string => createRequestId({ model: 'tiny', nowMs: Date.now() });

it('finds the dead with why they failed, newest first', async () => {
  const store = openTestStore();
  const first = await fail(store, { owner: 'alice' });
  const second = await fail(store);
  const dead = await listDead(store, 'tiny', 10);
  expect(dead.map(({ id }) => id)).toEqual([second, first]);
  expect(dead[1]).toEqual({
    id: first,
    model: 'tiny',
    failedAtMs: dead[1]!.failedAtMs,
    reason: 'the engine failed',
    owner: 'alice',
    code: 'internal',
    attempts: 1,
    isRetryable: true,
  });
  expect(await listDead(store, 'tiny', 1)).toHaveLength(1);
});

it('retries under a new id: the same for the same owner, with as much time as before, and the old one stays ended', async () => {
  const store = openTestStore();
  const webhook = { url: 'https://example.com', events: ['started' as const], progressIntervalMs: 1000 };
  const createdAtMs = Date.now() - 90_000;
  const times = { createdAtMs, deadlineMs: createdAtMs + 200_000, startDeadlineMs: createdAtMs + 150_000 };
  const id = await fail(store, { owner: 'alice', priority: 2, cost: 7, webhook, ...times });
  const events = await readEvents(store, id, { after: 0 });
  const again = newId();
  const nowMs = Date.now();
  expect(await retryRequest(store, id, { newId: again, nowMs })).toEqual({ status: 'retried', id: again, isNew: true });
  const old = await readRequest(store, id);
  expect(old).toMatchObject({ request: { state: 'failed', retriedAs: again, retryOf: undefined } });
  expect(await readEvents(store, id, { after: 0 })).toEqual(events);
  const retried = await store.redis.hgetall(store.keysOf('tiny').request(again));
  expect(retried).toMatchObject({
    state: 'queued',
    attempts: '0',
    owner: 'alice',
    weight: '3',
    cost: '7',
    retryOf: id,
  });
  expect(JSON.parse(retried['webhook']!)).toEqual({ kind: 'picture', ...webhook });
  expect(JSON.parse(retried['envelope']!)).toEqual({
    ...testEnvelope({ owner: 'alice', priority: 2, cost: 7, webhook }),
    id: again,
    createdAtMs: nowMs,
    deadlineMs: nowMs + 200_000,
    startDeadlineMs: nowMs + 150_000,
  });
  expect(await store.redis.smembers(store.keysOf('tiny').open('alice'))).toEqual([again]);
  expect(await readEvents(store, again, { after: 0 })).toMatchObject([{ sequence: 1, type: 'queued', attempt: 1 }]);
  expect(await listDead(store, 'tiny', 10)).toEqual([]);
  expect((await readStats(store, 'tiny')).queued).toBe(1);
  const next = (await take(store))!;
  await leaseBatch(store, 'tiny', [next], { mode: 'shared', maxRows: 8, maxAttempts: 3 });
  const told = await takeOutbox(store, 'tiny', { limit: 10, reclaimAfterMs: 10_000 });
  expect(told.map(({ requestId, retryOf }) => [requestId, retryOf])).toEqual([
    [id, undefined],
    [again, id],
  ]);
});

it('retries once, however many ask', async () => {
  const store = openTestStore();
  const id = await fail(store);
  const results = await Promise.all([newId(), newId(), newId()].map((id2) => retryRequest(store, id, { newId: id2 })));
  const ids = new Set(results.map((result) => result.status === 'retried' && result.id));
  expect(ids.size).toBe(1);
  expect(results.filter((result) => result.status === 'retried' && result.isNew)).toHaveLength(1);
  expect(await store.queueOf('tiny').getJobCounts('prioritized', 'failed')).toEqual({ prioritized: 1, failed: 0 });
});

it('belongs to the trace of who retries, not to that of the failed one', async () => {
  const store = openTestStore();
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const [traced, untraced] = [newId(), newId()];
  await retryRequest(store, await fail(store, { trace: `${trace}-of-the-first` }), { newId: traced, trace });
  await retryRequest(store, await fail(store, { trace }), { newId: untraced });
  expect(await readTrace(store, 'tiny', traced)).toBe(trace);
  expect(await readTrace(store, 'tiny', untraced)).toBeUndefined();
});

it('adds the job of a retry whose asker died before it could', async () => {
  const store = openTestStore();
  const id = await fail(store);
  const again = newId();
  await retryRequest(store, id, { newId: again });
  await store.queueOf('tiny').remove(again);
  expect(await retryRequest(store, id, { newId: newId() })).toEqual({ status: 'retried', id: again, isNew: false });
  expect(await take(store)).toMatchObject({ id: again });
});

it('retries only what has failed and is still stored', async () => {
  const store = openTestStore();
  const running = await run(store);
  expect(await retryRequest(store, running.id, { newId: newId() })).toEqual({ status: 'not-dead', state: 'running' });
  expect(await dropRequest(store, running.id)).toEqual({ status: 'not-dead', state: 'running' });
  await finishRequest(store, 'tiny', 'w1', running, { state: 'succeeded' });
  const before = await allKeys(store);
  expect(await retryRequest(store, running.id, { newId: newId() })).toEqual({ status: 'not-dead', state: 'succeeded' });
  expect(await dropRequest(store, running.id)).toEqual({ status: 'not-dead', state: 'succeeded' });
  expect(await retryRequest(store, newId(), { newId: newId() })).toEqual({ status: 'unknown' });
  expect(await dropRequest(store, newId())).toEqual({ status: 'unknown' });
  expect(await allKeys(store)).toEqual(before);
});

it('does not retry what has lost its prompts, and strips those of a retry at its end', async () => {
  const store = openTestStore();
  const { id, token } = await run(store, {}, testEnvelope({ input: {} }));
  await finishRequest(store, 'tiny', 'w1', { id, token }, { state: 'failed', error });
  expect(await listDead(store, 'tiny', 10)).toMatchObject([{ id, isRetryable: false }]);
  const before = await allKeys(store);
  expect(await retryRequest(store, id, { newId: newId() })).toEqual({ status: 'not-kept' });
  expect(await allKeys(store)).toEqual(before);
  const again = newId();
  await retryRequest(store, await fail(store), { newId: again, strip: (envelope) => ({ ...envelope, input: {} }) });
  const delivery = (await take(store))!;
  await leaseBatch(store, 'tiny', [delivery], { mode: 'shared', maxRows: 8, maxAttempts: 3 });
  await finishRequest(store, 'tiny', 'w1', delivery, { state: 'failed', error });
  expect(await readRequest(store, again)).toMatchObject({ request: { input: {} } });
});

it('drops all of it but the mark that it was', async () => {
  const store = openTestStore();
  const id = await fail(store);
  expect(await dropRequest(store, id)).toEqual({ status: 'dropped' });
  const keys = store.keysOf('tiny');
  expect((await allKeys(store)).filter((key) => key.includes(id))).toEqual([keys.gone(id)]);
  expect(await store.redis.pttl(keys.gone(id))).toBeGreaterThan(store.goneTtlMs - 60_000);
  expect(await readRequest(store, id)).toEqual({ status: 'gone' });
  expect(await listDead(store, 'tiny', 10)).toEqual([]);
  expect(await dropRequest(store, id)).toEqual({ status: 'gone' });
  expect(await retryRequest(store, id, { newId: newId() })).toEqual({ status: 'gone' });
});

it('still lists what has outlived its results, cannot retry it, and drops what is left', async () => {
  const store = openTestStore();
  const id = await fail(store);
  const keys = store.keysOf('tiny');
  await store.redis.del(keys.request(id), keys.events(id), keys.output(id, 0));
  expect(await listDead(store, 'tiny', 10)).toMatchObject([{ id, owner: undefined, isRetryable: false }]);
  expect(await retryRequest(store, id, { newId: newId() })).toEqual({ status: 'gone' });
  expect(await dropRequest(store, id)).toEqual({ status: 'dropped' });
  expect((await allKeys(store)).filter((key) => key.includes(id))).toEqual([keys.gone(id)]);
});

it('keeps a job that somebody has', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  expect(await dropRequest(store, delivery.id)).toEqual({ status: 'not-dead', state: 'running' });
  expect(await closeJob(store, 'tiny', delivery)).toBe('closed');
});
