/**
 * What a request costs Redis, by its own account of the time that scripts and commands took: with queues and pools of
 * different sizes, on a server of its own. The server's time is that of a CPU, so a busy machine changes little of it.
 */
import {
  cancelRequest,
  connectStore,
  type Delivery,
  dispatchRequests,
  expireRequests,
  heartbeatWorker,
  readDispatchable,
  readRequest,
  readStats,
  readWorkers,
  type StoreConnection,
  writeBatch,
} from '@darkroom/store';
import { age, seedRequest, seedWorker, startPrivateRedis, testEnvelope } from '@darkroom/testing';
import { it } from 'vitest';
import { report } from './report.ts';

interface Scene {
  name: string;
  waiting: number;
  owners: number;
  workers: number;
}

const scenes: Scene[] = [
  { name: 'nothing waits, 10 workers', waiting: 0, owners: 1, workers: 10 },
  { name: '10,000 of one owner, 10 workers', waiting: 10_000, owners: 1, workers: 10 },
  { name: '100,000 of one owner, 10 workers', waiting: 100_000, owners: 1, workers: 10 },
  { name: '100,000 of 10,000 owners, 10 workers', waiting: 100_000, owners: 10_000, workers: 10 },
  { name: '10,000 of one owner, 1,000 workers', waiting: 10_000, owners: 1, workers: 1000 },
];
const rounds = 50;
const rows = 8;

/** µs of Redis that a call takes, and how many calls over the network it is. */
async function costOf(store: StoreConnection, act: () => Promise<unknown>): Promise<{ us: number; calls: number }> {
  await store.redis.config('RESETSTAT');
  await act();
  const lines = (await store.redis.info('commandstats')).split('\r\n');
  let us = 0;
  let calls = 0;
  const isScripted = lines.some((line) => line.startsWith('cmdstat_eval'));
  for (const line of lines) {
    const found = /^cmdstat_(?<name>[^:]+):calls=(?<calls>\d+),usec=(?<us>\d+)/.exec(line)?.groups;
    if (found === undefined || found['name']!.startsWith('config') || found['name'] === 'info') continue;
    // What a script calls is counted by itself, and in the script's own time.
    if (isScripted && !found['name']!.startsWith('eval')) continue;
    us += Number(found['us']);
    calls += Number(found['calls']);
  }
  return { us, calls };
}

async function open({
  waiting,
  owners,
  workers,
}: Scene): Promise<{ store: StoreConnection; close: () => Promise<void> }> {
  const redis = await startPrivateRedis();
  const store = connectStore({ url: redis.url, prefix: 'bench' });
  for (let index = 0; index < workers; index++) await seedWorker(store, { workerId: `w${index}`, capacity: rows });
  for (let sent = 0; sent < waiting; sent += 1000)
    await Promise.all(
      Array.from({ length: Math.min(1000, waiting - sent) }, (_value, index) =>
        seedRequest(store, { owner: `owner-${(sent + index) % owners}`, options: { queueMaxLength: 1_000_000 } }),
      ),
    );
  const close = async (): Promise<void> => {
    await store.close();
    await redis.stop();
  };
  return { store, close };
}

async function measure(scene: Scene): Promise<Map<string, number[]>> {
  const { store, close } = await open(scene);
  const costs = new Map<string, number[]>();
  const note = async (name: string, act: () => Promise<unknown>, per = 1): Promise<void> => {
    const { us, calls } = await costOf(store, act);
    for (const [what, value] of [[`${name}, µs`, us / per] as const, [`${name}, calls`, calls] as const])
      costs.set(what, [...(costs.get(what) ?? []), value]);
  };
  const owner = 'owner-0';
  const options = { queueMaxLength: 1_000_000 };
  let batch = 0;
  for (let round = 0; round < rounds; round++) {
    const last = testEnvelope({ owner });
    await note('submit', () => seedRequest(store, { ...last, options }));
    await note('submit before all of its owner', () => seedRequest(store, { owner, priority: 1, options }));
    await note('poll', () => readRequest(store, last.id));
    for (let index = 0; index < rows; index++) await seedRequest(store, { owner, options });
    let deliveries: Delivery[] = [];
    let workerId = '';
    await note(`dispatch of ${rows}: look`, () =>
      readDispatchable(store, 'tiny', { maxWorkers: 32, maxRequests: 256, beyondRoom: 32 }),
    );
    const { workers, requests } = await readDispatchable(store, 'tiny', { maxWorkers: 32, maxRequests: rows });
    workerId = workers[0]!.id;
    await note(`dispatch of ${rows}: commit`, async () => {
      const lease = { workerId, isExclusive: false, requestIds: requests.map(({ id }) => id) };
      const outcomes = await dispatchRequests(store, 'tiny', [lease]);
      deliveries = outcomes.flatMap((outcome) => (outcome.status === 'leased' ? [outcome.delivery] : []));
    });
    const identity = { model: 'tiny', workerId, incarnation: 'first' };
    const step = { index: 0, done: 1, total: 4 };
    const of = { done: 1, total: 4 };
    await note(`step of ${rows} rows`, () =>
      writeBatch(
        store,
        identity,
        deliveries.map((delivery) => ({ type: 'progress', delivery, progress: step, of })),
        { batch: ++batch },
      ),
    );
    await note(`end of ${rows}`, () =>
      writeBatch(
        store,
        identity,
        deliveries.map((delivery) => ({ type: 'end', delivery, end: { state: 'canceled' } })),
        { batch: ++batch },
      ),
    );
    await note('heartbeat', () =>
      heartbeatWorker(store, identity, {
        pace: { costMs: { fast: 1, slow: 2 }, stepMs: { fast: 10, slow: 20 }, remainingCost: round },
      }),
    );
    const first = (await readDispatchable(store, 'tiny', { maxWorkers: 1, maxRequests: 1 })).requests[0];
    if (first !== undefined) await note('cancel at the front', () => cancelRequest(store, first.id));
    const overdue = await Promise.all(Array.from({ length: 10 }, () => seedRequest(store, { owner, options })));
    for (const envelope of overdue) await age(store, envelope, 600_000);
    await note('expiry of one, of ten', () => expireRequests(store, 'tiny'), 10);
    await note('/health, /v1/models, metrics: a model', () => readStats(store, 'tiny'));
    await note('/status: a model', () => readWorkers(store, 'tiny', 100));
  }
  await close();
  return costs;
}

it('costs Redis so much', { timeout: 1_800_000 }, async () => {
  for (const scene of scenes) {
    const costs = await measure(scene);
    report(scene.name, Object.fromEntries([...costs].map(([name, values]) => [name, middle(values)])));
  }
});

function middle(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0;
}
