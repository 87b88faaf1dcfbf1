/**
 * CPU time per request on the busiest node of a Redis Cluster (INFO cpu), with a model in 1, 2 and 4 shards: real
 * former, janitor and workers in this process, with fast fake engines. All nodes share this machine, so CPU time is
 * measured instead of latency.
 */
import { createRequestId, type RowRequest, shardName } from '@darkroom/core';
import {
  admitRequest,
  connectStore,
  createEventHub,
  listModels,
  publishModel,
  readRequest,
  readShardLoads,
  type StoreConnection,
} from '@darkroom/store';
import { type RedisCluster, silentLogger, startRedisCluster, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createShardChooser } from '../apps/api/src/context/choose-shard.ts';
import { BatchFormer } from '../apps/batch-former/src/batch-former.ts';
import { Janitor } from '../apps/janitor/src/janitor.ts';
import type { Worker } from '../apps/worker/src/worker/worker.ts';
import { FakeExecutor, openBench } from '../test/integration/worker-bench.ts';
import { publish } from './publish.ts';
import { median, medianWithRange } from './report.ts';

const counts = [1, 2, 4];
const rounds = 3;
const requests = 320;
const workers = 8;
const rows = 8;
const steps = 20;
/** Short, to keep rounds short; long enough that the progress of a step is sent with that step. */
const stepMs = 20;
const owners = ['alice', 'bob', 'carol', 'dave'];

/** Executor that steps all its requests together, like an engine. */
class SteppingExecutor extends FakeExecutor {
  readonly #done = new Map<string, number>();
  readonly #timer = setInterval(() => this.#step(), stepMs);

  override submit(all: readonly RowRequest[]): void {
    for (const { id } of all) this.#done.set(id, 0);
  }

  override shutdown(): Promise<void> {
    clearInterval(this.#timer);
    return super.shutdown();
  }

  #step(): void {
    for (const [id, before] of this.#done) this.#done.set(id, before + 1);
    const all = [...this.#done];
    this.emit(all.map(([id, done]) => ({ type: 'progress', requestId: id, index: 0, done, total: steps })));
    for (const [id, done] of all) {
      if (done < steps) continue;
      this.#done.delete(id);
      this.complete(id);
    }
  }
}

/** Returns the name of a model whose first four shards are on four masters. */
async function chooseModel(cluster: RedisCluster): Promise<string> {
  for (let number = 1; ; number++) {
    const model = `tiny-${number}`;
    const ports = new Set<number>();
    for (let shard = 0; shard < 4; shard++) ports.add((await cluster.masterOf(`{${shardName(model, shard)}}`)).port);
    if (ports.size === 4) return model;
  }
}

/** Returns the CPU µs of each master. */
function cpuOf(store: StoreConnection): Promise<number[]> {
  return Promise.all(
    store.masters().map(async (master) => {
      const info = await master.info('cpu');
      const seconds = ['user', 'sys'].map((kind) => Number(new RegExp(`^used_cpu_${kind}:(.*)`, 'm').exec(info)?.[1]));
      return 1e6 * seconds.reduce((sum, each) => sum + each);
    }),
  );
}

async function startAll(store: StoreConnection, model: string, count: number) {
  const log = silentLogger();
  const options = { sweepIntervalMs: 500, leakSweepIntervalMs: 600_000, workerTtlMs: 600_000 };
  const janitor = new Janitor({ store, log, ...options, modelShards: count });
  const wakeups = createEventHub(store);
  const policy = { maxSize: rows, timeoutMs: 0 };
  const former = new BatchFormer({ store, wakeups, policy, log });
  const card = { id: model } as never;
  await publishModel(store, card);
  const all: Worker[] = Array.from({ length: workers }, (_worker, at) => {
    const createExecutor = (emit: ConstructorParameters<typeof FakeExecutor>[0]) => {
      const executor = new SteppingExecutor(emit);
      executor.card = card;
      return executor;
    };
    return openBench({ store, card, workerId: `w${at}`, capacity: rows, heartbeatMs: 1000, createExecutor }).worker;
  });
  await Promise.all([janitor, former, ...all].map((part) => part.start()));
  const shards = await vi.waitFor(
    async () => {
      const own = (await listModels(store)).find(({ id }) => id === model)!.shards;
      expect(own).toHaveLength(count);
      for (const load of await readShardLoads(store, own)) expect(load.workers).toBe(workers / count);
      return own;
    },
    { timeout: 30_000, interval: 100 },
  );
  const stop = async (): Promise<void> => {
    await Promise.all([janitor, former, ...all].map((part) => part.stop()));
    wakeups.close();
  };
  return { shards, stop };
}

/** Submits all requests at once and polls each once a second until it has ended. */
async function run(store: StoreConnection, model: string, shards: readonly string[]): Promise<void> {
  const choose = createShardChooser();
  const all = Array.from({ length: requests }, async (_request, at) => {
    const owner = owners[at % owners.length]!;
    const shard = choose(owner, { shards, cost: steps });
    const id = createRequestId({ model: shard, owner, nowMs: Date.now(), secret: 'bench' });
    const otherShards = shards.filter((other) => other !== shard);
    const limits = { queueMaxLength: 100_000, unserved: 'accept', ownerMaxBytes: 1e12, otherShards } as const;
    await admitRequest(store, testEnvelope({ id, model, owner, cost: steps }), limits);
    await vi.waitFor(
      async () => expect(await readRequest(store, id)).toMatchObject({ request: { state: 'succeeded' } }),
      { timeout: 120_000, interval: 1000 },
    );
  });
  await Promise.all(all);
}

it('CPU time per request on the busiest node', { timeout: 900_000 }, async () => {
  const cluster = await startRedisCluster({ masters: 4, nodeTimeoutMs: 60_000 });
  onTestFinished(() => cluster.stop());
  const model = await chooseModel(cluster);
  const costs = new Map(counts.map((count) => [count, { busiest: [] as number[], all: [] as number[] }]));
  for (let round = 0; round < rounds; round++)
    for (const count of counts) {
      const store = connectStore({ url: cluster.url, prefix: `bench-${round}-${count}` });
      const { shards, stop } = await startAll(store, model, count);
      const before = await cpuOf(store);
      await run(store, model, shards);
      const used = (await cpuOf(store)).map((us, at) => (us - before[at]!) / requests);
      costs.get(count)!.busiest.push(Math.max(...used));
      costs.get(count)!.all.push(used.reduce((sum, us) => sum + us, 0));
      await stop();
      await store.close();
    }
  const one = median(costs.get(1)!.busiest);
  publish({
    name: 'shards',
    title: 'What shards take off the busiest node of a Cluster',
    notes: [
      `A Cluster of four masters with a replica each, a model in 1, 2 and 4 shards, each on a master of its own. Real former, janitor and ${workers} workers of ${rows} rows, whose engines take ${steps} steps of ${stepMs} ms; ${requests} requests at once, of ${owners.length} owners, each polled once a second. Medians of ${rounds} alternating rounds, with minimum and maximum.`,
      'µs are CPU time of a node (INFO cpu), which includes replication and work for requests of other shards: a Cluster forwards published messages to all its nodes. All nodes share this machine, so nothing gets faster here: the load of one node counts.',
    ],
    tables: [
      {
        title: 'µs of Redis for a request (less is better)',
        columns: ['shards', 'busiest node', 'all masters'],
        rows: counts.map((count) => [
          `${count} shards`,
          medianWithRange(costs.get(count)!.busiest),
          medianWithRange(costs.get(count)!.all),
        ]),
        drawn: 'bars',
      },
      {
        title: 'Requests a second for one full core of the busiest node',
        columns: ['shards', 'requests/s', 'busiest node, of that with one shard'],
        rows: counts.map((count) => {
          const busiest = median(costs.get(count)!.busiest);
          return [`${count}`, Math.round(1e6 / busiest), busiest / one];
        }),
      },
    ],
  });
});
