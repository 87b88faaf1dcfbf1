import { cancelRequest, readRequest, readStats } from '@darkroom/store';
import { openTestStore, seedRunning, silentLogger } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { StrangeLeases } from './strange-leases.ts';
import { WriteQueue } from './write-queue.ts';

async function open(known: string[] = []) {
  const store = openTestStore();
  const { worker: identity, delivery } = await seedRunning(store);
  const writes = new WriteQueue({ store, identity });
  const isKnown = (token: string): boolean => known.includes(token);
  const options = { store, identity, writes, isKnown, heartbeatMs: 1000, log: silentLogger() };
  return { store, delivery, known, strange: new StrangeLeases(options) };
}

type Bench = Awaited<ReturnType<typeof open>>;

async function stateOf({ store, delivery }: Bench): Promise<string> {
  const result = await readRequest(store, delivery.id);
  return result.status === 'found' ? result.request.state : result.status;
}

it('gives back what the worker does not have although it has read its inbox', async () => {
  const bench = await open();
  const { strange, store } = bench;
  await strange.checkOnce();
  strange.received();
  await strange.checkOnce();
  // The look into the inbox may have begun before the lease.
  expect(await stateOf(bench)).toBe('running');
  strange.received();
  await strange.checkOnce();
  expect(await stateOf(bench)).toBe('queued');
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1 }, freeSlots: 8 });
});

it('leaves what the worker has, and what it has in the meantime', async () => {
  const bench = await open();
  const { strange, known, delivery } = bench;
  await strange.checkOnce();
  known.push(delivery.token);
  for (let look = 0; look < 3; look++) {
    strange.received();
    await strange.checkOnce();
  }
  expect(await stateOf(bench)).toBe('running');
});

it('ends what was canceled', async () => {
  const bench = await open();
  await cancelRequest(bench.store, bench.delivery.id);
  await bench.strange.giveBack(bench.delivery);
  expect(await stateOf(bench)).toBe('canceled');
  expect(await readStats(bench.store, 'tiny')).toMatchObject({ freeSlots: 8 });
});
