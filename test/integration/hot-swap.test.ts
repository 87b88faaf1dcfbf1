/** Workers whose model's files are replaced under them: they load them anew one after the other, and no row goes on with another model. */
import type { ModelCard } from '@darkroom/core';
import {
  askWorker,
  listModels,
  listWorkers,
  readAsset,
  readLoadFailures,
  readWorkers,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore } from '@darkroom/testing';
import { expect, it } from 'vitest';
import type { WorkerOptions } from '../../apps/worker/src/worker-options.ts';
import { type Bench, card, lease, openBench, stateOf, submit, types } from './worker-bench.ts';

/** Loads that end when the test says so. */
function holdLoads({ executor }: Bench) {
  const held: { finish: () => void; fail: () => void }[] = [];
  executor.starting = () =>
    new Promise<ModelCard>((finish, fail) => {
      held.push({ finish: () => finish(card), fail: () => fail(new Error('no such file')) });
    });
  return held;
}

async function openPair(options: Partial<WorkerOptions> = {}): Promise<[Bench, Bench]> {
  const store = openTestStore();
  const open = async (workerId: string): Promise<Bench> => {
    const bench = openBench({ store, workerId, retryMs: { firstMs: 0, mostMs: 0 }, ...options });
    await bench.worker.start();
    return bench;
  };
  return [await open('w1'), await open('w2')];
}

async function statesOf(store: StoreConnection): Promise<string[]> {
  return (await readWorkers(store, 'tiny', 10)).map(({ state }) => state);
}

async function reloadAll({ store }: Bench): Promise<void> {
  for (const worker of await listWorkers(store, 'tiny')) await askWorker(store, worker, 'reload');
}

/** Until the second worker has its turn, or what it says. */
async function beatUntil({ worker }: Bench, isSo: () => boolean): Promise<void> {
  await expect
    .poll(async () => {
      await worker.beatOnce();
      return isSo();
    })
    .toBe(true);
}

it('is done by one worker after the other', async () => {
  const [one, other] = await openPair();
  const loads = [holdLoads(one), holdLoads(other)] as const;
  await reloadAll(one);
  await expect.poll(() => loads.flat()).toHaveLength(1);
  const [first, second] = loads[0].length > 0 ? [0, 1] : [1, 0];
  const benches = [one, other];
  for (let beats = 0; beats < 3; beats++) for (const { worker } of benches) await worker.beatOnce();
  expect((await statesOf(one.store)).toSorted()).toEqual(['idle', 'loading']);
  expect(loads[second]).toHaveLength(0);
  expect(await one.store.redis.pttl(one.store.keysOf('tiny').reloading)).toBeGreaterThan(600_000);
  loads[first]![0]!.finish();
  await beatUntil(benches[second]!, () => loads[second]!.length === 1);
  await expect.poll(() => benches[first]!.worker.isReady).toBe(true);
  loads[second]![0]!.finish();
  await expect.poll(() => statesOf(one.store)).toEqual(['idle', 'idle']);
  expect(await one.store.redis.exists(one.store.keysOf('tiny').reloading)).toBe(0);
});

it('leaves the others as they are while it cannot be loaded, and says so', async () => {
  const [one, other] = await openPair({ retryMs: { firstMs: 1, mostMs: 1 } });
  for (const { executor } of [one, other]) executor.starting = () => Promise.reject(new Error('no such file'));
  await reloadAll(one);
  await expect.poll(() => readLoadFailures(one.store)).toMatchObject([{ model: 'tiny' }]);
  for (let beats = 0; beats < 3; beats++) for (const { worker } of [one, other]) await worker.beatOnce();
  expect((await statesOf(one.store)).toSorted()).toEqual(['idle', 'loading']);
  for (const { executor } of [one, other]) executor.starting = () => Promise.resolve(card);
  await beatUntil(one, () => one.worker.isReady);
  await beatUntil(other, () => other.worker.isReady);
  await expect
    .poll(async () => {
      for (const { worker } of [one, other]) await worker.beatOnce();
      return one.store.redis.exists(one.store.keysOf('tiny').reloading);
    })
    .toBe(0);
});

it('goes on with the next when a worker dies in its turn', async () => {
  const [one, other] = await openPair({ heartbeatMs: 20 });
  const loads = holdLoads(other);
  const { reloading } = one.store.keysOf('tiny');
  await one.store.redis.set(reloading, 'of one that is dead', 'PX', 100);
  await reloadAll(one);
  await expect.poll(() => loads).toHaveLength(1);
  loads[0]!.finish();
  await expect.poll(() => statesOf(one.store)).toEqual(['idle', 'idle']);
});

it.each([
  ['goes on with the same model', 'old', 1],
  ['begins anew with another', 'new', 0],
])('a row that broke off %s', async (_what, digest, resumed) => {
  const files = { digest: 'old', changed: [], look: () => Promise.resolve(false) };
  const { store, worker, executor } = openBench({ files });
  await worker.start();
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  const { id: requestId } = executor.submitted.pop()!;
  executor.emit([
    { type: 'checkpoint', requestId, index: 0, checkpoint: { done: 3, data: Uint8Array.of(1) } },
    { type: 'request-lost', requestId, message: 'it broke off' },
  ]);
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'queued']);
  files.digest = digest;
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  expect(executor.submitted[0]!.checkpoints!.size).toBe(resumed);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
});

it('publishes what was loaded anew, and what readers need beside it', async () => {
  const assets = ['one', 'two'].map((name) => ({ name, bytes: Buffer.from(name) }));
  const prepared = [undefined, { asset: assets[1]!, capacity: 9 }];
  const { store, worker, executor } = openBench({
    asset: assets[0]!,
    prepare: () => Promise.resolve(prepared.shift()),
  });
  await worker.start();
  expect(await readAsset(store, 'tiny', 'one')).toEqual(assets[0]!.bytes);
  executor.card = { ...card, ownedBy: 'two' };
  await askWorker(store, { model: 'tiny', workerId: 'w1' }, 'reload');
  await expect.poll(() => listModels(store)).toMatchObject([{ ownedBy: 'two' }]);
  expect(await readAsset(store, 'tiny', 'two')).toEqual(assets[1]!.bytes);
  await expect.poll(() => readWorkers(store, 'tiny', 1)).toMatchObject([{ capacity: 9, freeSlots: 9 }]);
});
