import {
  admitRequest,
  cancelRequest,
  drainWorker,
  finishRequest,
  heartbeatWorker,
  leaseBatch,
  openJobTaker,
  pauseModel,
  registerWorker,
  type StoreConnection,
  withdrawWorker,
} from '@darkroom/store';
import { testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { type Status, statusSchema } from './status-schema.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

const nowMs = Date.now();
const clock = { now: () => nowMs };

async function status(test: TestApi): Promise<Status> {
  const response = await test.api.request('/status');
  expect(response.status).toBe(200);
  return statusSchema.parse(await response.json());
}

async function register(store: StoreConnection, workerId: string, state: 'loading' | 'ready' = 'ready') {
  const identity = { model: 'tiny', workerId, incarnation: workerId };
  const info = { device: 'cpu', host: 'box', pid: 7, version: '0.1.0' };
  await registerWorker(store, identity, { state, capacity: 4, ttlMs: 60_000, info, nowMs: nowMs - 9000 });
  return identity;
}

async function run(store: StoreConnection): Promise<{ id: string; token: string }> {
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  const envelope = testEnvelope({ createdAtMs: nowMs - 5000 });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  const deliveries = await taker.take(1);
  await leaseBatch(store, 'tiny', deliveries, { mode: 'shared', maxRows: 4, maxAttempts: 3 });
  return deliveries[0]!;
}

it('a model without workers and requests', async () => {
  const test = await openTestApi({ clock });
  expect(await status(test)).toEqual({
    time: new Date(nowMs).toISOString(),
    workers: [],
    queues: [
      {
        model: 'tiny',
        paused: false,
        queued: 0,
        running: 0,
        oldest_age_s: null,
        per_minute: { finished: 0, failed: 0 },
        ended: { succeeded: 0, failed: 0, canceled: 0, expired: 0 },
        requeued: { worker_lost: 0, engine_failed: 0, worker_stopped: 0 },
      },
    ],
    failures: [],
    failed_to_load: [],
  });
});

it('workers in every state', async () => {
  const test = await openTestApi({ clock });
  const { store } = test;
  const busy = await register(store, 'busy');
  await run(store);
  const range = { fast: 20, slow: 30 };
  await heartbeatWorker(store, busy, {
    ttlMs: 60_000,
    pace: { costMs: range, stepMs: range, remainingCost: 1 },
    nowMs: nowMs - 1000,
  });
  await register(store, 'idle');
  await register(store, 'loading', 'loading');
  await drainWorker(store, await register(store, 'leaving'));
  await withdrawWorker(store, await register(store, 'drained'));
  await register(store, 'silent');
  await store.redis.del(store.keysOf('tiny').alive('silent'));
  const { workers } = await status(test);
  expect(workers.map(({ id, state, loaded, draining, stopping }) => [id, state, loaded, draining, stopping])).toEqual([
    ['busy', 'busy', true, false, false],
    ['drained', 'draining', true, true, false],
    ['idle', 'idle', true, false, false],
    ['leaving', 'draining', true, true, true],
    ['loading', 'loading', false, false, false],
    ['silent', 'silent', false, false, false],
  ]);
  expect(workers[0]).toEqual({
    id: 'busy',
    model: 'tiny',
    state: 'busy',
    loaded: true,
    draining: false,
    stopping: false,
    device: 'cpu',
    host: 'box',
    version: '0.1.0',
    rows: 4,
    free_rows: 3,
    registered_at: new Date(nowMs - 9000).toISOString(),
    last_heartbeat_at: new Date(nowMs - 1000).toISOString(),
    step_ms: range,
  });
  expect(workers[2]).toMatchObject({ last_heartbeat_at: new Date(nowMs - 9000).toISOString(), step_ms: null });
});

it('queues, rates and failures', async () => {
  const test = await openTestApi({ clock });
  const { store } = test;
  await register(store, 'w1');
  await finishRequest(store, 'tiny', 'w1', await run(store), { state: 'succeeded' });
  const error = { code: 'internal', message: 'the engine failed' } as const;
  await finishRequest(store, 'tiny', 'w1', await run(store), { state: 'failed', error });
  await run(store);
  await cancelRequest(store, await test.submit());
  const waiting = testEnvelope({ createdAtMs: nowMs - 2500 });
  await admitRequest(store, waiting, { queueMaxLength: 100, unserved: 'accept' });
  await pauseModel(store, 'tiny');
  const { queues, failures } = await status(test);
  expect(queues).toEqual([
    {
      model: 'tiny',
      paused: true,
      queued: 1,
      running: 1,
      oldest_age_s: 2.5,
      per_minute: { finished: 0.2, failed: 0.2 },
      ended: { succeeded: 1, failed: 1, canceled: 1, expired: 0 },
      requeued: { worker_lost: 0, engine_failed: 0, worker_stopped: 0 },
    },
  ]);
  expect(failures).toMatchObject([{ model: 'tiny', reason: 'the engine failed' }]);
});

it('rates are of the last minutes: what is older does not count', async () => {
  const test = await openTestApi();
  const { store } = test;
  await register(store, 'w1');
  await finishRequest(store, 'tiny', 'w1', await run(store), { state: 'succeeded' });
  const rateAfter = async (minutes: number): Promise<number | undefined> => {
    const later = test.replica({ clock: { now: () => nowMs + minutes * 60_000 } });
    return (await status(later)).queues[0]?.per_minute.finished;
  };
  expect([await rateAfter(3), await rateAfter(6)]).toEqual([0.2, 0]);
});

it('needs a key on a server that has keys', async () => {
  const key = { name: 'alice', weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
  const test = await openTestApi({ apiKeys: new Map([[hashKey('secret'), key]]) });
  expect((await test.api.request('/status')).status).toBe(401);
  const headers = { Authorization: 'Bearer secret' };
  expect((await test.api.request('/status', { headers })).status).toBe(200);
});
