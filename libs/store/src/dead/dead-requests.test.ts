/** Failed requests (dead letters): listed, retried once, dropped. */
import type { RequestEnvelope } from '@darkroom/core';
import {
  allKeys,
  createCostMeter,
  dispatchNext,
  openTestStore,
  seedRunning,
  testEnvelope,
  writeNow,
} from '@darkroom/testing';
import { expect, it } from 'vitest';
import {
  dropRequest,
  listDead,
  newRequestId,
  readEvents,
  readRequest,
  readStats,
  retryRequest,
  type StoreConnection,
  takeOutbox,
} from '../index.ts';

const error = { code: 'internal', message: 'the engine failed' } as const;
const worker = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };

/** Creates a failed request with an output. */
async function fail(
  store: StoreConnection,
  overrides: Partial<RequestEnvelope> = {},
  promptless?: RequestEnvelope,
): Promise<string> {
  const { owner = '' } = overrides;
  const id = await newRequestId(store, { model: 'tiny', owner, nowMs: Date.now() });
  const { delivery } = await seedRunning(store, { id, ...overrides, options: { weight: 3, promptless } });
  const info = { index: 0, contentType: 'image/png', bytes: 3, chunks: 1 };
  await writeNow(store, worker, { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('png') });
  expect(await writeNow(store, worker, { type: 'end', delivery, end: { state: 'failed', error } })).toBe('finished');
  return id;
}

it('lists failed requests with their errors, newest first', async () => {
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

it('retries with the same envelope and timeouts under a new id, and leaves the failed request as it is', async () => {
  const store = openTestStore();
  const webhook = { url: 'https://example.com', events: ['started' as const], progressIntervalMs: 1000 };
  const overrides = { owner: 'alice', priority: 2, cost: 7, webhook, timeoutMs: 200_000, startTimeoutMs: 150_000 };
  const id = await fail(store, overrides);
  const events = await readEvents(store, id, { after: 0 });
  const result = await retryRequest(store, id);
  if (result.status !== 'retried') throw new Error(result.status);
  const { id: again } = result;
  expect(result.isNew).toBe(true);
  expect(again).not.toBe(id);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'failed', retriedAs: again } });
  expect(await readEvents(store, id, { after: 0 })).toEqual(events);
  const keys = store.keysOf('tiny');
  const retried = await store.redis.hgetall(keys.request(again));
  const fields = { state: 'queued', attempts: '0', owner: 'alice', weight: '3', cost: '7', retryOf: id };
  expect(retried).toMatchObject(fields);
  expect(Number(retried['deadlineMs']) - Number(retried['createdAtMs'])).toBe(200_000);
  expect(Number(retried['startDeadlineMs']) - Number(retried['createdAtMs'])).toBe(150_000);
  expect(JSON.parse((await store.redis.get(keys.input(again)))!)).toEqual({ ...testEnvelope(overrides), id: again });
  expect(await store.redis.hgetall(keys.open)).toEqual({ alice: '1' });
  expect(await readEvents(store, again, { after: 0 })).toMatchObject([{ sequence: 1, type: 'queued', attempt: 1 }]);
  expect(await listDead(store, 'tiny', 10)).toEqual([]);
  expect((await readStats(store, 'tiny')).queued).toBe(1);
  await dispatchNext(store);
  const outbox = await takeOutbox(store, 'tiny', { limit: 10, reclaimAfterMs: 10_000 });
  expect(outbox.map(({ requestId, retryOf }) => [requestId, retryOf])).toEqual([
    [id, undefined],
    [again, id],
  ]);
});

it('creates one retry for concurrent calls', async () => {
  const store = openTestStore();
  const id = await fail(store);
  const results = await Promise.all([1, 2, 3].map(() => retryRequest(store, id)));
  expect(new Set(results.map((result) => result.status === 'retried' && result.id)).size).toBe(1);
  expect(results.filter((result) => result.status === 'retried' && result.isNew)).toHaveLength(1);
  expect((await readStats(store, 'tiny')).queued).toBe(1);
});

async function traceOfRetry(trace: string, options = {}): Promise<string | null> {
  const store = openTestStore();
  const result = await retryRequest(store, await fail(store, { trace }), options);
  if (result.status !== 'retried') throw new Error(result.status);
  return store.redis.hget(store.keysOf('tiny').request(result.id), 'trace');
}

it('gives a retry the trace of the retry call, not that of the failed request', async () => {
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  expect(await traceOfRetry(`${trace}-of-the-first`, { trace })).toBe(trace);
  expect(await traceOfRetry(trace)).toBeNull();
});

it('retries and drops only failed requests that are still stored', async () => {
  const store = openTestStore();
  const { delivery } = await seedRunning(store);
  expect(await retryRequest(store, delivery.id)).toEqual({ status: 'not-dead', state: 'running' });
  expect(await dropRequest(store, delivery.id)).toEqual({ status: 'not-dead', state: 'running' });
  await writeNow(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 0 } });
  const before = (await allKeys(store)).filter((key) => !key.endsWith(':id-secret'));
  expect(await retryRequest(store, delivery.id)).toEqual({ status: 'not-dead', state: 'succeeded' });
  expect(await dropRequest(store, delivery.id)).toEqual({ status: 'not-dead', state: 'succeeded' });
  expect(await retryRequest(store, testEnvelope().id)).toEqual({ status: 'unknown' });
  expect(await dropRequest(store, testEnvelope().id)).toEqual({ status: 'unknown' });
  expect((await allKeys(store)).filter((key) => !key.endsWith(':id-secret'))).toEqual(before);
});

it('does not retry a request whose prompt was deleted, and deletes the prompt of a retry at its end', async () => {
  const store = openTestStore();
  const id = await fail(store, {}, testEnvelope({ input: {} }));
  expect(await listDead(store, 'tiny', 10)).toMatchObject([{ id, isRetryable: false }]);
  const before = await allKeys(store);
  expect(await retryRequest(store, id)).toEqual({ status: 'not-kept' });
  expect(await allKeys(store)).toEqual(before);
  const again = await retryRequest(store, await fail(store), { strip: (envelope) => ({ ...envelope, input: {} }) });
  const [delivery] = await dispatchNext(store);
  await writeNow(store, worker, { type: 'end', delivery: delivery!, end: { state: 'failed', error } });
  expect(again).toMatchObject({ id: delivery!.id });
  expect(await readRequest(store, delivery!.id)).toMatchObject({ request: { input: {} } });
});

it('drops all keys of a request; its id is then gone, not unknown', async () => {
  const store = openTestStore();
  const id = await fail(store);
  expect(await dropRequest(store, id)).toEqual({ status: 'dropped' });
  expect((await allKeys(store)).filter((key) => key.includes(id))).toEqual([]);
  expect(await readRequest(store, id)).toEqual({ status: 'gone' });
  expect(await listDead(store, 'tiny', 10)).toEqual([]);
  expect(await dropRequest(store, id)).toEqual({ status: 'gone' });
  expect(await retryRequest(store, id)).toEqual({ status: 'gone' });
});

it('lists a failed request after its results expired, cannot retry it, and drops its entry', async () => {
  const store = openTestStore();
  const id = await fail(store);
  const keys = store.keysOf('tiny');
  await store.redis.del(keys.request(id), keys.input(id), keys.events(id), keys.output(id, 0));
  expect(await listDead(store, 'tiny', 10)).toMatchObject([{ id, owner: undefined, isRetryable: false }]);
  expect(await retryRequest(store, id)).toEqual({ status: 'gone' });
  expect(await dropRequest(store, id)).toEqual({ status: 'dropped' });
  expect(await listDead(store, 'tiny', 10)).toEqual([]);
});

it('drops requests in the terminal states of `only`', async () => {
  const store = openTestStore();
  const { delivery } = await seedRunning(store);
  const only = ['succeeded', 'canceled'] as const;
  expect(await dropRequest(store, delivery.id, { only })).toEqual({ status: 'not-dead', state: 'running' });
  await writeNow(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 0 } });
  const costOf = await createCostMeter(store);
  // The list of failed requests is not read.
  const { sent } = await costOf(async () =>
    expect(await dropRequest(store, delivery.id, { only })).toEqual({ status: 'dropped' }),
  );
  expect(sent).not.toContain('xrange');
  expect((await allKeys(store)).filter((key) => key.includes(delivery.id))).toEqual([]);
});
