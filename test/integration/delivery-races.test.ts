/** What happens between the scripts: replies that are lost, calls that are sent twice, processes that die in between. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RequestEnvelope } from '@darkroom/core';
import {
  admitRequest,
  connectStore,
  type Delivery,
  giveBackRequest,
  heartbeatWorker,
  leaseBatch,
  openInbox,
  openJobTaker,
  publishModel,
  readPool,
  readRequest,
  registerWorker,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { runScript } from '../../libs/store/src/scripts.ts';
import { Janitor } from '../../apps/janitor/src/janitor.ts';

const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
const announcement = { state: 'ready', capacity: 8, ttlMs: 600_000, info: {} } as const;
const lease = { mode: 'shared', maxRows: 8, maxAttempts: 3 } as const;

async function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<string> {
  const envelope = testEnvelope(overrides);
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

async function take(store: StoreConnection): Promise<Delivery> {
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  const [delivery] = await taker.take(1);
  return delivery!;
}

async function run(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<Delivery> {
  await registerWorker(store, identity, announcement);
  await submit(store, overrides);
  const delivery = await take(store);
  expect((await leaseBatch(store, 'tiny', [delivery], lease)).outcomes).toEqual(['leased']);
  return delivery;
}

it('a lease that is asked for twice, because the reply got lost, is granted once', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  await registerWorker(store, { ...identity, workerId: 'w2' }, announcement);
  expect((await leaseBatch(store, 'tiny', [delivery], lease)).outcomes).toEqual(['leased']);
  expect(await store.redis.llen(store.keysOf('tiny').inbox('w1'))).toBe(1);
  expect(await store.redis.llen(store.keysOf('tiny').inbox('w2'))).toBe(0);
  expect(await readPool(store, 'tiny')).toMatchObject({ idle: 1, busy: 1, freeRows: 15 });
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { attempts: 1 } });
});

it('a request that is given back twice, because the reply got lost, is in the queue', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  // The first call's script ran; its caller never heard of it.
  const giveBack = [delivery.id, Date.now(), delivery.token, 'w1', '0'];
  await runScript(store.redis, 'requeue-request', store.keysOf('tiny').base, ...giveBack);
  expect(await giveBackRequest(store, 'tiny', 'w1', delivery, 'stops')).toBe('requeued');
  expect((await take(store)).id).toBe(delivery.id);
});

it('an idle worker whose heartbeat was late for a moment gets leases again', async () => {
  const store = openTestStore();
  await registerWorker(store, identity, announcement);
  await submit(store);
  const delivery = await take(store);
  await store.redis.del(store.keysOf('tiny').alive('w1'));
  expect((await leaseBatch(store, 'tiny', [delivery], lease)).outcomes).toEqual(['waiting']);
  expect(await heartbeatWorker(store, identity, { ttlMs: 600_000 })).toBe('alive');
  expect((await leaseBatch(store, 'tiny', [delivery], lease)).outcomes).toEqual(['leased']);
});

it('a request given back by a worker that stops has started in time', async () => {
  const store = openTestStore();
  const now = Date.now();
  const delivery = await run(store, { createdAtMs: now, startDeadlineMs: now + 60_000, deadlineMs: now + 100_000 });
  await giveBackRequest(store, 'tiny', 'w1', delivery, 'stops');
  const again = await take(store);
  const { outcomes } = await leaseBatch(store, 'tiny', [again], { ...lease, nowMs: now + 61_000 });
  expect(outcomes).toEqual(['leased']);
});

it('what a janitor recovered before it died is requeued by the next', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  const { id } = await run(store);
  await store.redis.del(store.keysOf('tiny').lock(id));
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  await taker.recoverStalled();
  await expect.poll(() => taker.recoverStalled(), { interval: 2 }).toEqual([id]);
  const janitor = new Janitor({
    store,
    log: silentLogger(),
    // What this machine does between the worker's coming and the sweep is no pause then.
    sweepIntervalMs: 60_000,
    leakSweepIntervalMs: 60_000,
    lockMs: 60_000,
  });
  onTestFinished(() => janitor.stop());
  await janitor.sweepOnce('tiny');
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', queuePosition: 0 } });
});

it('rows of a batch that never reached its worker are free again', async () => {
  const store = openTestStore();
  const { id } = await run(store);
  // Popped, and the reply lost with the connection: the worker knows nothing of it and renews nothing.
  await store.redis.del(store.keysOf('tiny').inbox('w1'), store.keysOf('tiny').lock(id));
  await heartbeatWorker(store, identity, { ttlMs: 600_000 });
  expect(await readPool(store, 'tiny')).toMatchObject({ idle: 1, freeRows: 8 });
});

it('giving back what is lost frees its rows', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  await store.redis.set(store.keysOf('tiny').lock(delivery.id), 'somebody else');
  expect(await giveBackRequest(store, 'tiny', 'w1', delivery, 'failed')).toBe('held');
  expect(await readPool(store, 'tiny')).toMatchObject({ idle: 1, freeRows: 8 });
});

it('a submit that is sent twice, because the reply got lost, is admitted', async () => {
  const store = openTestStore();
  const envelope = testEnvelope();
  const admission = { queueMaxLength: 100, unserved: 'accept' } as const;
  await admitRequest(store, envelope, admission);
  await store.queueOf('tiny').remove(envelope.id);
  expect(await admitRequest(store, envelope, admission)).toMatchObject({ status: 'admitted', position: 0 });
  expect(await admitRequest(store, { ...envelope, priority: 1 }, admission)).toEqual({ status: 'duplicate' });
  expect((await take(store)).id).toBe(envelope.id);
  expect(await readPool(store, 'tiny')).toMatchObject({ queued: 1 });
});

it('an inbox whose connection has gone silent is read over another', { timeout: 15_000 }, async () => {
  const store = openTestStore();
  const proxy = await openProxy();
  const behindProxy = connectStore({ url: proxy.url, prefix: store.prefix });
  onTestFinished(() => behindProxy.close());
  // The time until it counts as silent: else what comes late in the test would be lost with its connection.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const inbox = openInbox(behindProxy, identity, { silenceMs: 5000 });
  onTestFinished(() => inbox.close());
  expect(await inbox.next(0.1)).toBeUndefined();
  // As when a firewall forgets a connection: neither side hears of it.
  proxy.silence();
  const message = inbox.next(0.1);
  await store.redis.rpush(store.keysOf('tiny').inbox('w1'), '{"type":"drained"}');
  vi.advanceTimersByTime(5100);
  expect((await message) ?? (await inbox.next(1))).toEqual({ type: 'drained' });
});

it('commands on a connection that has gone silent are sent again over another', { timeout: 15_000 }, async () => {
  const store = openTestStore();
  const proxy = await openProxy();
  const behindProxy = connectStore({ url: proxy.url, prefix: store.prefix, silenceMs: 200 });
  onTestFinished(() => behindProxy.close());
  await registerWorker(behindProxy, identity, announcement);
  proxy.silence();
  expect(await heartbeatWorker(behindProxy, identity, { ttlMs: 600_000 })).toBe('alive');
});

/** A way to Redis on which the connections that are open at one moment can be made to carry nothing any more. */
async function openProxy(): Promise<{ url: string; silence(): void }> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-proxy-'));
  const path = join(directory, 'proxy.sock');
  const pairs: { near: Socket; far: Socket }[] = [];
  const redis = new URL(inject('redisUrl'));
  const port = Number(redis.port);
  const server = createServer((near) => {
    const far = connect(redis.protocol === 'unix:' ? { path: redis.pathname } : { host: redis.hostname, port });
    for (const socket of [near, far]) socket.on('error', () => socket.destroy());
    near.pipe(far).pipe(near);
    pairs.push({ near, far });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const { near, far } of pairs) [near, far].forEach((socket) => socket.destroy());
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    url: `unix://${path}`,
    silence() {
      for (const { near, far } of pairs) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
      }
    },
  };
}
