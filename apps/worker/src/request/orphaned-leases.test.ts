import { cancelRequest, readRequest, readStats, type WorkerIdentity } from '@darkroom/store';
import { openTestStore, seedRunning, silentLogger } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { OrphanedLeases } from './orphaned-leases.ts';
import { WriteQueue } from './write-queue.ts';

async function open(known: string[] = []) {
  const store = openTestStore();
  const { worker: identity, delivery } = await seedRunning(store);
  const getIdentity = (): WorkerIdentity => identity;
  const writes = new WriteQueue({ store, getIdentity });
  const isKnown = (token: string): boolean => known.includes(token);
  const options = { store, getIdentity, writes, isKnown, heartbeatMs: 1000, log: silentLogger() };
  return { store, delivery, known, orphans: new OrphanedLeases(options) };
}

type Bench = Awaited<ReturnType<typeof open>>;

async function stateOf({ store, delivery }: Bench): Promise<string> {
  const result = await readRequest(store, delivery.id);
  return result.status === 'found' ? result.request.state : result.status;
}

it('requeues a lease that the worker does not have after reading its inbox twice', async () => {
  const bench = await open();
  const { orphans, store } = bench;
  await orphans.checkOnce();
  orphans.received();
  await orphans.checkOnce();
  // The first inbox read may have begun before the lease.
  expect(await stateOf(bench)).toBe('running');
  orphans.received();
  await orphans.checkOnce();
  expect(await stateOf(bench)).toBe('queued');
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1 }, freeSlots: 8 });
});

it('keeps leases that the worker has or receives meanwhile', async () => {
  const bench = await open();
  const { orphans, known, delivery } = bench;
  await orphans.checkOnce();
  known.push(delivery.token);
  for (let times = 0; times < 3; times++) {
    orphans.received();
    await orphans.checkOnce();
  }
  expect(await stateOf(bench)).toBe('running');
});

it('ends a canceled request', async () => {
  const bench = await open();
  await cancelRequest(bench.store, bench.delivery.id);
  await bench.orphans.requeue(bench.delivery);
  expect(await stateOf(bench)).toBe('canceled');
  expect(await readStats(bench.store, 'tiny')).toMatchObject({ freeSlots: 8 });
});
