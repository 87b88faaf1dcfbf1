/** A model in several shards: real batch-former, janitors and workers over a real Redis, with instant engines. */
import type { RowRequest } from '@darkroom/core';
import type { ExecutorEvent } from '@darkroom/executor';
import { listModels, publishModel, readShardLoads, readStats, type StoreConnection, sumStats } from '@darkroom/store';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createShardChooser } from '../../apps/api/src/context/choose-shard.ts';
import { Janitor } from '../../apps/janitor/src/janitor.ts';
import { openFormer } from './open-former.ts';
import { seedShare } from './seed-share.ts';
import { card, FakeExecutor, openBench } from './worker-bench.ts';

const sweepIntervalMs = 20;

/** Completes each request in the next event-loop turn, as long as `begun` returns true. */
class InstantExecutor extends FakeExecutor {
  readonly #begun: (owner: string) => boolean;

  constructor(emit: (events: readonly ExecutorEvent[]) => void, begun: (owner: string) => boolean) {
    super(emit);
    this.#begun = begun;
  }

  override submit(requests: readonly RowRequest[]): void {
    super.submit(requests);
    for (const { id, owner = '' } of requests) if (this.#begun(owner)) setImmediate(() => this.complete(id));
  }
}

async function startJanitor(store: StoreConnection, modelShards: number): Promise<Janitor> {
  const janitor = new Janitor({
    store,
    log: silentLogger(),
    sweepIntervalMs,
    leakSweepIntervalMs: 600_000,
    // Long enough that a busy machine reaps no worker.
    workerTtlMs: 600_000,
    modelShards,
  });
  onTestFinished(() => janitor.stop());
  await janitor.start();
  return janitor;
}

async function startWorkers(store: StoreConnection, count: number, begun: (owner: string) => boolean): Promise<void> {
  const benches = Array.from({ length: count }, (_worker, at) =>
    openBench({
      store,
      workerId: `w${at}`,
      heartbeatMs: 100,
      createExecutor: (emit) => new InstantExecutor(emit, begun),
    }),
  );
  await Promise.all(benches.map(({ worker }) => worker.start()));
}

async function openSpread(count: number) {
  const store = openTestStore();
  await publishModel(store, card);
  const janitor = await startJanitor(store, count);
  return { store, janitor, shards: await shardsOnce(store, count) };
}

/** Resolves with the model's shards once there are `count`. */
function shardsOnce(store: StoreConnection, count: number): Promise<readonly string[]> {
  return vi.waitFor(async () => {
    const [model] = await listModels(store);
    expect(model!.shards).toHaveLength(count);
    return model!.shards;
  });
}

async function workersIn(store: StoreConnection, shards: readonly string[]): Promise<number[]> {
  return (await readShardLoads(store, shards)).map(({ workers }) => workers).toSorted((left, right) => left - right);
}

it('workers start in the first shard and are rebalanced over all shards', async () => {
  const { store, shards } = await openSpread(3);
  await startWorkers(store, 7, () => true);
  await vi.waitFor(async () => expect(await workersIn(store, shards)).toEqual([2, 2, 3]), { timeout: 10_000 });
});

/**
 * Weight and number of queued requests: enough that every shard still has some of each owner after `counted` have
 * begun.
 */
const owners = { alice: [1, 400], bob: [3, 1200], carol: [2, 800] } as const;
const counted = 600;

it.each([
  [2, 4],
  [4, 4],
  // Odd numbers: one worker is shared by shards or moves between them.
  [2, 3],
  [2, 1],
  [4, 2],
])('fair shares of owners hold over %i shards with %i workers', async (count, workers) => {
  const { store, shards } = await openSpread(count);
  const choose = createShardChooser(() => 0);
  const all = Object.entries(owners).flatMap(([owner, [weight, requests]]) =>
    Array.from({ length: requests }, () => ({ owner, weight, shard: choose(owner, { shards, cost: 1 }) })),
  );
  await Promise.all(all.map((each) => seedShare(store, each)));
  const begun: string[] = [];
  await startWorkers(store, workers, (owner) => {
    begun.push(owner);
    // Later requests are not counted and keep their worker busy.
    return begun.length < counted;
  });
  await openFormer(store, { slowTickMs: 1000 }).former.start();
  await vi.waitFor(() => expect(begun.length).toBeGreaterThanOrEqual(counted), { timeout: 60_000, interval: 100 });
  const first = begun.slice(0, counted);
  for (const [owner, [weight]] of Object.entries(owners)) {
    const share = first.filter((each) => each === owner).length / ((counted * weight) / 6);
    expect(Math.abs(share - 1), `${owner}: ${share}`).toBeLessThanOrEqual(0.05);
  }
});

it('removing shards drains them and their workers move back; adding shards uses them again', async () => {
  const { store, janitor, shards } = await openSpread(3);
  await startWorkers(store, 2, () => true);
  await janitor.stop();
  const less = await startJanitor(store, 1);
  await shardsOnce(store, 1);
  await Promise.all(shards.map((shard) => seedShare(store, { owner: '', weight: 1, shard })));
  await openFormer(store, { slowTickMs: 1000 }).former.start();
  await vi.waitFor(
    async () => {
      const stats = sumStats(await Promise.all(shards.map((shard) => readStats(store, shard))));
      expect(stats).toMatchObject({ queued: 0, running: 0, shards: 3 });
      expect(await readShardLoads(store, shards)).toMatchObject([{ workers: 2 }, { workers: 0 }, { workers: 0 }]);
    },
    { timeout: 20_000 },
  );
  await less.stop();
  await startJanitor(store, 2);
  expect(await shardsOnce(store, 2)).toEqual(shards.slice(0, 2));
  await vi.waitFor(async () => expect(await workersIn(store, shards)).toEqual([0, 1, 1]), { timeout: 10_000 });
});
