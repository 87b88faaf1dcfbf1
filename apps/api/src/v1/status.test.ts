import {
  admitRequest,
  cancelRequest,
  drainWorker,
  heartbeatWorker,
  pauseModel,
  publishModel,
  readTime,
  registerWorker,
  type StoreConnection,
  sweepWorkers,
  drainByOperator,
  type WorkerIdentity,
} from '@darkroom/store';
import { allKeys, dispatchNext, testEnvelope } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { type Status, statusSchema } from './status.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { cardWith, openTestApi, type TestApi } from '../testing/test-api.ts';

/** Differs from the clock of Redis. */
const clock = { now: () => 0 };

async function status(test: TestApi): Promise<Status> {
  const response = await test.api.request('/status');
  expect(response.status).toBe(200);
  return statusSchema.parse(await response.json());
}

async function register(
  store: StoreConnection,
  workerId: string,
  state: 'loading' | 'ready' = 'ready',
): Promise<WorkerIdentity> {
  const identity = { shard: 'tiny', workerId, incarnation: workerId };
  const info = { device: 'cpu', host: 'box', pid: 7, version: '0.1.0' };
  await registerWorker(store, identity, { state, capacity: 4, info });
  return identity;
}

/** Returns a stored time of a worker, by the clock of Redis. */
async function timeOf(store: StoreConnection, workerId: string, field: 'registeredAtMs' | 'heartbeatAtMs') {
  return new Date(Number(await store.redis.hget(store.keysOf('tiny').worker(workerId), field))).toISOString();
}

it('shows a model without workers and requests', async () => {
  const test = await openTestApi({ clock });
  const beforeMs = await readTime(test.store);
  const { time, ...answer } = await status(test);
  expect(Date.parse(time)).toBeGreaterThanOrEqual(beforeMs);
  expect(Date.parse(time)).toBeLessThanOrEqual(await readTime(test.store));
  expect(answer).toEqual({
    workers: [],
    queues: [
      {
        model: 'tiny',
        paused: false,
        queued: 0,
        running: 0,
        workers: 0,
        oldest_age_s: null,
        per_minute: { finished: 0, failed: 0 },
        ended: { succeeded: 0, failed: 0, canceled: 0, expired: 0 },
        requeued: { worker_lost: 0, engine_failed: 0, worker_stopped: 0 },
      },
    ],
    failures: [],
    failed_to_load: [],
    refused_files: [],
  });
});

it('lists the files that a model is served without, with the reason', async () => {
  const refusedFiles = [{ file: 'loras/other.safetensors', reason: 'is for another model' }];
  const test = await openTestApi({ clock });
  await publishModel(test.store, cardWith({ refusedFiles }));
  expect((await status(test)).refused_files).toEqual([{ model: 'tiny', ...refusedFiles[0] }]);
  const models = (await (await test.api.request('/v1/models')).json()) as { data: object[] };
  expect(JSON.stringify(models)).not.toContain('other.safetensors');
});

it('shows workers in every state', async () => {
  const test = await openTestApi({ clock });
  const { store } = test;
  const busy = await register(store, 'busy');
  await admitRequest(store, testEnvelope(), { queueMaxLength: 100, unserved: 'accept' });
  await dispatchNext(store);
  await register(store, 'silent');
  const others = [busy];
  for (const id of ['idle', 'leaving', 'drained']) others.push(await register(store, id));
  others.push(await register(store, 'loading', 'loading'));
  await drainWorker(store, others[2]!);
  await drainByOperator(store, others[3]!);
  const range = { fast: 20, slow: 30 };
  // Half of the sweeps that a worker may miss.
  for (let sweep = 0; sweep < 3; sweep++) {
    expect((await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 4 })).reaped).toEqual([]);
    for (const worker of others) {
      const pace = { costMs: range, stepMs: range, remainingCost: 1 };
      await heartbeatWorker(store, worker, worker === busy ? { pace } : {});
    }
  }
  const { workers, queues } = await status(test);
  expect(workers.map(({ id, state, loaded, draining, stopping }) => [id, state, loaded, draining, stopping])).toEqual([
    ['busy', 'busy', true, false, false],
    ['drained', 'draining', true, true, false],
    ['idle', 'idle', true, false, false],
    ['leaving', 'draining', true, true, true],
    ['loading', 'loading', false, false, false],
    ['silent', 'silent', false, false, false],
  ]);
  expect(queues[0]?.workers).toBe(6);
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
    changed_files: null,
    rows: 4,
    free_rows: 3,
    registered_at: await timeOf(store, 'busy', 'registeredAtMs'),
    last_heartbeat_at: await timeOf(store, 'busy', 'heartbeatAtMs'),
    step_ms: range,
  });
  expect(workers[2]).toMatchObject({ step_ms: null });
});

it('lists at most a hundred workers of a model, but counts all', async () => {
  const test = await openTestApi({ clock });
  for (let index = 0; index < 120; index++) await register(test.store, `w${index}`);
  const { workers, queues } = await status(test);
  expect([workers.length, queues[0]?.workers]).toEqual([100, 120]);
});

it('shows queues, rates and failures', async () => {
  const test = await openTestApi({ clock });
  const { store } = test;
  await startWorker(store);
  const start = async () => {
    await test.submit();
    return runNext(store);
  };
  const run = await start();
  await run.output(0, Buffer.from('png'));
  await run.finish();
  const error = { code: 'internal', message: 'the engine failed' } as const;
  await (await start()).finish({ state: 'failed', error });
  await start();
  await cancelRequest(store, await test.submit());
  await pauseModel(store, 'tiny');
  const waiting = await test.submit();
  const admittedAtMs = (await readTime(store)) - 2500;
  await store.redis.zadd(store.keysOf('tiny').waiting, admittedAtMs, waiting);
  const { time, queues, failures } = await status(test);
  expect(queues).toEqual([
    {
      model: 'tiny',
      paused: true,
      queued: 1,
      running: 1,
      workers: 1,
      oldest_age_s: (Date.parse(time) - admittedAtMs) / 1000,
      // One succeeded and one canceled request in five minutes.
      per_minute: { finished: 0.4, failed: 0.2 },
      ended: { succeeded: 1, failed: 1, canceled: 1, expired: 0 },
      requeued: { worker_lost: 0, engine_failed: 0, worker_stopped: 0 },
    },
  ]);
  expect(failures).toMatchObject([{ model: 'tiny', reason: 'the engine failed' }]);
});

it('computes rates over the last minutes by the clock of Redis', async () => {
  const test = await openTestApi({ clock });
  const { store } = test;
  await startWorker(store);
  await test.submit();
  await (await runNext(store)).finish();
  let [key] = (await allKeys(store)).filter((name) => name.includes(':minute:'));
  const rates: unknown[] = [];
  for (const ago of [3, 6]) {
    // Backdates the end.
    const minute = store.keysOf('tiny').minute(Math.floor((await readTime(store)) / 60_000) - ago);
    await store.redis.rename(key!, minute);
    key = minute;
    rates.push((await status(test.replica())).queues[0]?.per_minute.finished);
  }
  expect(rates).toEqual([0.2, 0]);
});

it('requires a key on a server with keys', async () => {
  const key = { name: 'alice', weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
  const test = await openTestApi({ apiKeys: new Map([[hashKey('secret'), key]]) });
  expect((await test.api.request('/status')).status).toBe(401);
  const headers = { Authorization: 'Bearer secret' };
  expect((await test.api.request('/status', { headers })).status).toBe(200);
});
