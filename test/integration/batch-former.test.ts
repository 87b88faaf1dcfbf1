/** The former against a real queue, with workers that are only registered: what is leased, to whom, and when. */
import type { BatchPolicy } from '@darkroom/batching';
import type { RequestEnvelope } from '@darkroom/core';
import {
  admitRequest,
  cancelRequest,
  createWakeups,
  finishRequest,
  type InboxMessage,
  openInbox,
  publishModel,
  readPool,
  readRequest,
  registerWorker,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { BatchFormer } from '../../apps/batch-former/src/batch-former.ts';
import { runScript } from '../../libs/store/src/scripts.ts';
import { ModelFormer } from '../../apps/batch-former/src/model-former.ts';

const policy: BatchPolicy = { maxSize: 8, timeoutMs: 0, isBatching: true };

function createFormer(store: StoreConnection, overrides: Partial<BatchPolicy> = {}, lookahead = 0): ModelFormer {
  const wakeups = createWakeups(store);
  const former = new ModelFormer({
    store,
    model: 'tiny',
    wakeups,
    policy: { ...policy, ...overrides },
    lookahead,
    maxAttempts: 3,
    lockMs: 60_000,
    heartbeatMs: 1000,
    // Nothing here happens because time passed.
    slowTickMs: 3_600_000,
    log: silentLogger(),
  });
  onTestFinished(() => former.stop());
  return former;
}

async function register(store: StoreConnection, workerId: string, capacity = 8): Promise<void> {
  const identity = { model: 'tiny', workerId, incarnation: workerId };
  await registerWorker(store, identity, { state: 'ready', capacity, ttlMs: 600_000, info: {} });
}

async function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<string> {
  const envelope = testEnvelope(overrides);
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

async function inbox(store: StoreConnection, workerId: string): Promise<InboxMessage[]> {
  const entries = await store.redis.lrange(store.keysOf('tiny').inbox(workerId), 0, -1);
  return entries.map((entry) => JSON.parse(entry) as InboxMessage);
}

function idsOf(messages: InboxMessage[]): string[][] {
  return messages.map((message) => (message.type === 'run' ? message.requests.map(({ envelope }) => envelope.id) : []));
}

it('leases one batch for each shape, in dispatch order', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  const small = [await submit(store), await submit(store)];
  const wide = await submit(store, { shapeKey: '256x128' });
  small.push(await submit(store));
  await createFormer(store).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([small, [wide]]);
});

it('divides what waits among idle workers', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  await register(store, 'w2');
  for (let count = 0; count < 6; count++) await submit(store);
  await createFormer(store).runOnce();
  expect(idsOf(await inbox(store, 'w1')).flat()).toHaveLength(3);
  expect(idsOf(await inbox(store, 'w2')).flat()).toHaveLength(3);
});

it('takes no more out of the queue than workers have room for', async () => {
  const store = openTestStore();
  await register(store, 'w1', 2);
  for (let count = 0; count < 5; count++) await submit(store);
  const former = createFormer(store);
  await former.runOnce();
  await former.runOnce();
  expect(former.held).toBe(0);
  expect(await store.queueOf('tiny').getPrioritizedCount()).toBe(3);
  expect((await readPool(store, 'tiny')).queued).toBe(3);
  // What waits can still be overtaken.
  const urgent = await submit(store, { priority: 1 });
  expect(await readRequest(store, urgent)).toMatchObject({ request: { queuePosition: 0 } });
});

it('takes no more requests of many rows than find room', async () => {
  const store = openTestStore();
  await register(store, 'w1', 8);
  for (let count = 0; count < 4; count++) await submit(store, { slots: 10 });
  const former = createFormer(store);
  await former.runOnce();
  expect(former.held).toBe(0);
  expect(await store.queueOf('tiny').getPrioritizedCount()).toBe(3);
});

it('holds a bounded look-ahead, and gives it back when it stops', async () => {
  const store = openTestStore();
  await register(store, 'w1', 1);
  const ids: string[] = [];
  for (let count = 0; count < 5; count++) ids.push(await submit(store));
  const former = createFormer(store, {}, 2);
  await former.start();
  await expect.poll(() => former.held).toBe(2);
  await former.stop();
  expect(former.held).toBe(0);
  const waiting = await store.queueOf('tiny').getPrioritized();
  expect(new Set(waiting.map(({ id }) => id))).toEqual(new Set(ids.slice(1)));
});

it('gives every request a worker of its own without batching', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  const first = await submit(store);
  await submit(store);
  const former = createFormer(store, { isBatching: false });
  await former.runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([[first]]);
  expect((await readPool(store, 'tiny')).freeRows).toBe(0);
});

it('drops what was canceled while it was held', async () => {
  const store = openTestStore();
  await register(store, 'w1', 1);
  await submit(store, { slots: 1 });
  const former = createFormer(store, {}, 1);
  await former.runOnce();
  const held = await submit(store);
  await former.runOnce();
  expect(former.held).toBe(1);
  expect(await cancelRequest(store, held)).toEqual({ status: 'canceled' });
  await register(store, 'w2');
  await former.runOnce();
  expect(former.held).toBe(0);
  expect(await inbox(store, 'w2')).toEqual([]);
  expect(await store.redis.exists(store.keysOf('tiny').job(held))).toBe(0);
});

it('what was canceled takes nobody its place', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  await register(store, 'w1', 2);
  const canceled = await submit(store);
  // The process that cancels dies between ending the request and taking its job away.
  const { base } = store.keysOf('tiny');
  await runScript(store.redis, 'cancel-request', base, canceled, Date.now(), '*');
  const next = await submit(store);
  const former = createFormer(store);
  await former.start();
  await expect.poll(async () => idsOf(await inbox(store, 'w1'))).toEqual([[next]]);
  await expect.poll(() => store.redis.exists(store.keysOf('tiny').job(canceled))).toBe(0);
});

it('reacts to requests and to freed rows by itself, for models it has just heard of', async () => {
  const store = openTestStore();
  const wakeups = createWakeups(store);
  const formers = new BatchFormer({
    store,
    wakeups,
    policy,
    lookahead: 0,
    maxAttempts: 3,
    lockMs: 60_000,
    heartbeatMs: 1000,
    log: silentLogger(),
  });
  onTestFinished(() => formers.stop());
  await formers.start();
  await store.redis.hset(`${store.prefix}:models`, 'tiny', '{"id":"tiny"}');
  await formers.discoverOnce();
  await register(store, 'w1', 1);
  const mailbox = openInbox(store, { model: 'tiny', workerId: 'w1', incarnation: 'w1' });
  for (let count = 0; count < 3; count++) {
    const id = await submit(store);
    const message = await mailbox.next(10);
    expect(message).toMatchObject({ type: 'run', requests: [{ envelope: { id } }] });
    if (message?.type === 'run')
      await finishRequest(store, 'tiny', 'w1', { id, token: message.requests[0]!.token }, { state: 'succeeded' });
  }
});

it('tries a model again that it could not listen for', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  const wakeups = createWakeups(store);
  const listen = vi.spyOn(wakeups, 'listen').mockRejectedValueOnce(new Error('NOPERM'));
  const formers = new BatchFormer({
    store,
    wakeups,
    policy,
    lookahead: 0,
    maxAttempts: 3,
    lockMs: 60_000,
    heartbeatMs: 1000,
    log: silentLogger(),
  });
  onTestFinished(() => formers.stop());
  await formers.discoverOnce().catch(() => {});
  await formers.start();
  await expect.poll(() => listen, { timeout: 3000 }).toHaveBeenCalledTimes(2);
});

it('many formers take each job once', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  for (let worker = 0; worker < 4; worker++) await register(store, `w${worker}`, 5);
  const ids = await Promise.all(Array.from({ length: 40 }, () => submit(store)));
  const formers = Array.from({ length: 3 }, () => createFormer(store));
  for (let turn = 0; turn < 3; turn++) await Promise.all(formers.map((former) => former.runOnce()));
  const leased: string[] = [];
  for (let worker = 0; worker < 4; worker++) leased.push(...idsOf(await inbox(store, `w${worker}`)).flat());
  expect(new Set(leased).size).toBe(leased.length);
  expect(leased).toHaveLength(20);
  const held = formers.reduce((sum, former) => sum + former.held, 0);
  expect(held + (await store.queueOf('tiny').getPrioritizedCount())).toBe(ids.length - leased.length);
});
