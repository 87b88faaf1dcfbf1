/**
 * CPU time of Redis per operation of the system (INFO cpu), with pools and queues of different sizes, each on its own
 * server. No cost may grow faster than the logarithm of a size.
 */
import {
  cancelRequest,
  connectStore,
  createEventHub,
  type Delivery,
  type EventHub,
  expireRequests,
  heartbeatWorker,
  listLeases,
  publishModel,
  readDispatchable,
  readEvents,
  readRequest,
  type RequestWrite,
  splitOutput,
  type StoreConnection,
  sweepWorkers,
  type WorkerIdentity,
  writeBatch,
} from '@darkroom/store';
import { Metrics } from '@darkroom/service';
import {
  backdateRequest,
  seedRequest,
  seedWorker,
  silentLogger,
  startPrivateRedis,
  testEnvelope,
} from '@darkroom/testing';
import { it } from 'vitest';
import { card, createTestApi } from '../apps/api/src/testing/test-api.ts';
import { BatchFormer } from '../apps/batch-former/src/batch-former.ts';
import { reportQueues } from '../apps/janitor/src/report-queues.ts';
import { costOf } from './redis-cpu.ts';
import { publishAtEnd } from './publish.ts';
import { median } from './report.ts';
import type { Table } from './table.ts';

interface Scene {
  workers: number;
  waiting: number;
  owners: number;
  models: number;
}

/** Default sizes; each scene changes one of them. */
const usual: Scene = { workers: 10, waiting: 100, owners: 1, models: 1 };
const sizes: { [Name in keyof Scene]: readonly number[] } = {
  workers: [1, 10, 100, 1000],
  waiting: [1, 100, 10_000, 100_000],
  owners: [1, 10_000],
  models: [1, 200],
};
/** Waiting requests with many owners, so that each owner has some. */
const waitingOfMany = 20_000;
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 30);
const rows = 8;
const model = 'tiny';
const options = { queueMaxLength: 1_000_000, ownerMaxBytes: 1e15 };
const worker: WorkerIdentity = { shard: model, workerId: 'w0', incarnation: 'first' };

async function times(count: number, act: (index: number) => Promise<unknown>): Promise<void> {
  for (let index = 0; index < count; index++) await act(index);
}

/** Seeds a system: all workers but one are full, and requests wait. */
async function seed(store: StoreConnection, { workers, waiting, owners, models }: Scene): Promise<void> {
  for (let index = 0; index < models; index++) {
    const id = index === 0 ? model : `tiny-${index}`;
    await publishModel(store, { ...card, id });
    if (index > 0) await seedWorker(store, { model: id });
  }
  await times(workers - 1, (index) => seedWorker(store, { workerId: `w${index + 1}`, capacity: rows }));
  const submit = (count: number): Promise<void> =>
    times(Math.ceil(count / 500), (page) =>
      Promise.all(
        Array.from({ length: Math.min(500, count - 500 * page) }, (_value, index) =>
          seedRequest(store, { owner: `owner-${(500 * page + index) % owners}`, options }),
        ),
      ),
    );
  await submit((workers - 1) * rows);
  await former(store).runOnce(model);
  await submit(waiting);
  await seedWorker(store, { workerId: worker.workerId, capacity: rows });
}

function former(store: StoreConnection): BatchFormer {
  const wakeups = { listen: () => Promise.resolve(() => {}) };
  const policy = { maxSize: rows, timeoutMs: 0 };
  return new BatchFormer({ store, wakeups, policy, log: silentLogger() });
}

/** Opens a separate system; each round measures every operation once. */
async function open(scene: Scene) {
  const redis = await startPrivateRedis();
  const store = connectStore({ url: redis.url, prefix: 'bench' });
  await seed(store, scene);
  const costs = new Map<string, number[]>();
  const note = async (name: string, act: () => Promise<unknown>, per = 1): Promise<void> => {
    costs.set(name, [...(costs.get(name) ?? []), (await costOf(store, act)) / per]);
  };
  const parts = { store, scene, note, hub: createEventHub(store) };
  const reading = createReading(parts);
  const working = createWorking(parts);
  return {
    costs,
    async round(): Promise<void> {
      await working();
      await reading();
    },
    async close(): Promise<void> {
      parts.hub.close();
      await store.close();
      await redis.stop();
    },
  };
}

interface Parts {
  store: StoreConnection;
  scene: Scene;
  hub: EventHub;
  note: (name: string, act: () => Promise<unknown>, per?: number) => Promise<void>;
}

/** Returns a function that measures the operations of requests and their worker. */
function createWorking({ store, scene, hub, note }: Parts): () => Promise<void> {
  const forming = former(store);
  let batch = 0;
  const write = (writes: Parameters<typeof writeBatch>[2]) => writeBatch(store, worker, writes, { batch: ++batch });
  const pace = { costMs: { fast: 1, slow: 2 }, stepMs: { fast: 10, slow: 20 }, remainingCost: 4 };
  const of = { done: 1, total: 20 };
  const output = { index: 0, contentType: 'image/png', data: Buffer.alloc(120), facts: { seed: 7 }, chunkBytes: 3000 };
  return async () => {
    const owner = ownerOf(batch, scene);
    const sent = Array.from({ length: rows }, () => testEnvelope({ owner }));
    await note('submit', () => times(rows, (index) => seedRequest(store, { ...sent[index], options })), rows);
    await note('poll', () => times(rows, (index) => readRequest(store, sent[index]!.id)), rows);
    await note(`dispatch of ${rows}`, () => forming.runOnce(model));
    const deliveries: readonly Delivery[] = await listLeases(store, worker);
    if (deliveries.length !== rows) throw new Error(`${deliveries.length} requests are leased, expected ${rows}`);
    const steps = deliveries.map((delivery): RequestWrite => {
      return { type: 'progress', delivery, progress: { index: 0, ...of }, of };
    });
    await note(`step of ${rows}`, () => times(4, () => write(steps)), 4);
    await note('events: follow and leave', async () => {
      const { id } = deliveries[0]!;
      const leave = await hub.subscribe(id, () => {});
      await readEvents(store, id, { after: 0 });
      leave();
    });
    const ends = deliveries.flatMap((delivery): RequestWrite[] => [
      ...splitOutput(delivery, output),
      { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } },
    ]);
    await note(`output and end of ${rows}`, () => write(ends));
    await note('heartbeat', () => times(4, () => heartbeatWorker(store, worker, { pace })), 4);
  };
}

/** Returns a function that measures reads, and the ends of waiting requests. Leaves the queue length unchanged. */
function createReading({ store, scene, note }: Parts): () => Promise<void> {
  let nowMs = Date.now();
  // Advance the clock so that caches of one second are always stale.
  const { api } = createTestApi({ store, clock: { now: () => (nowMs += 2000) } });
  const metrics = new Metrics({ app: 'janitor', log: silentLogger() });
  reportQueues({ store, metrics });
  const get = (path: string) => note(path, async () => api.request(path));
  const otherShards = Array.from({ length: scene.models - 1 }, (_value, index) => `tiny-${index + 1}`);
  const limited = { ...options, otherShards, openRequestsMax: 1_000_000 };
  return async () => {
    const owner = ownerOf(nowMs, scene);
    const { requests } = await readDispatchable(store, model, { maxWorkers: 1, maxRequests: 1 });
    await note('cancel at the front', () => cancelRequest(store, requests[0]!.id));
    await note('submit of a key with open_requests', () => seedRequest(store, { owner, options: limited }));
    const overdue = await Promise.all(Array.from({ length: 10 }, () => seedRequest(store, { owner, options })));
    for (const envelope of overdue) await backdateRequest(store, envelope, 600_000);
    await note('expiry, each of ten', () => expireRequests(store, model), 10);
    await note("a janitor's sweep", () => sweepWorkers(store, model, { intervalMs: 1e9, missedSweeps: 1000 }));
    for (const path of ['/health', '/status', '/v1/models']) await get(path);
    await note('metrics scrape', () => metrics.expose());
  };
}

function ownerOf(number: number, { owners }: Scene): string {
  return `owner-${number % owners}`;
}

/** Returns c of a cost nᶜ; a logarithm is below 0.25 from 1 to 100,000. */
function growth(first: number, last: number, ratio: number): string {
  return (Math.log(last / first) / Math.log(ratio)).toFixed(2);
}

const tables: Table[] = [];

publishAtEnd(() => ({
  name: 'queue-cost',
  title: 'What each thing that the system does costs Redis',
  notes: [
    `CPU time of Redis's main thread (INFO cpu), on separate servers, alternating; medians of ${rounds} rounds. Each table changes one size; the others are ${usual.workers} workers of ${rows} rows, ${usual.waiting} waiting, one owner, one model. All workers but one are full.`,
    `With many owners ${waitingOfMany.toLocaleString('en')} requests wait. The last column is the exponent by which a cost grows with the size: a logarithm is below 0.25 over 100,000.`,
  ],
  tables,
}));

it.each(Object.keys(sizes) as (keyof Scene)[])(
  'CPU time of Redis by number of %s',
  { timeout: 1_800_000 },
  async (name) => {
    const waiting = name === 'owners' ? waitingOfMany : usual.waiting;
    const systems: Awaited<ReturnType<typeof open>>[] = [];
    for (const size of sizes[name]) systems.push(await open({ ...usual, waiting, [name]: size }));
    // Alternate, so that load of the machine affects all equally; the first rounds warm up.
    for (let round = 0; round < rounds; round++) for (const system of systems) await system.round();
    for (const system of systems) await system.close();
    const most = sizes[name].at(-1)! / sizes[name][0]!;
    const found = [...systems[0]!.costs.keys()].map((operation) => {
      const values = systems.map(({ costs }) => median(costs.get(operation)!));
      return [operation, ...values.map(Math.round), growth(values[0]!, values.at(-1)!, most)];
    });
    tables.push({
      title: `µs of Redis, by ${name} (less is better)`,
      columns: [name, ...sizes[name], 'grows with the power of'],
      rows: found,
      drawn: 'lines of rows',
    });
  },
);
