/** Models that share the memory of one process: who is loaded, who makes room, who waits. */
import type { RowRequest } from '@darkroom/core';
import {
  askWorker,
  cancelRequest,
  dispatchRequests,
  listShards,
  readAnswers,
  readEvents,
  readLoadFailures,
  readRequest,
  readStats,
  type StoreConnection,
} from '@darkroom/store';
import { silentLogger } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import { BatchFormer } from '../../apps/batch-former/src/batch-former.ts';
import { openModels } from './models-bench.ts';
import { stateOf, submit, types } from './worker-bench.ts';

async function workersOf(store: StoreConnection, model: string): Promise<string[]> {
  const { workers } = await readStats(store, model);
  return Object.entries(workers).flatMap(([state, count]) => (count > 0 ? [state] : []));
}

async function loadingMsOf(store: StoreConnection, id: string): Promise<number | undefined> {
  const result = await readRequest(store, id);
  return result.status === 'found' ? result.request.loadingMs : undefined;
}

function openFormer(store: StoreConnection): BatchFormer {
  const policy = { maxSize: 8, timeoutMs: 0, isBatching: true, maxAttempts: 3, lookahead: 0 };
  const wakeups = { listen: () => Promise.resolve(() => {}) };
  return new BatchFormer({ store, policy, wakeups, log: silentLogger() });
}

it('begins asleep and is loaded when it is asked for; who was used least lately makes room', async () => {
  const { store, ask, awake, completeAll, executor } = await openModels({ a: 40, b: 40, c: 40 }, { budget: 100 });
  expect(awake()).toEqual([]);
  expect((await listShards(store)).toSorted()).toEqual(['a', 'b', 'c']);
  for (const model of ['a', 'b', 'a']) {
    const id = await ask(model);
    await expect.poll(() => executor(model).submitted).toHaveLength(1);
    await completeAll(model);
    expect(await stateOf(store, id)).toBe('succeeded');
  }
  await ask('c');
  await expect.poll(() => executor('c').submitted).toHaveLength(1);
  expect(awake()).toEqual(['a', 'c']);
  expect(['a', 'b', 'c'].map((model) => executor(model).loads)).toEqual([1, 1, 1]);
  expect(await workersOf(store, 'b')).toEqual(['asleep']);
});

it('without a budget all are awake at once', async () => {
  const { ask, awake } = await openModels({ a: 40, b: 40, c: 40 }, { budget: Infinity });
  for (const model of ['a', 'b', 'c']) await ask(model);
  await expect.poll(awake).toEqual(['a', 'b', 'c']);
});

it('takes no room from one with work: who comes waits, says so, and is loaded when that has ended', async () => {
  const { store, ask, awake, executor, completeAll } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  const id = await ask('b');
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading']);
  // It may have to wait for ten minutes.
  expect(await readEvents(store, id, { after: 2 })).toMatchObject([{ type: 'loading', expectedMs: 600_000 }]);
  expect(await loadingMsOf(store, id)).toBeGreaterThan(500_000);
  expect(awake()).toEqual(['a']);
  expect(await workersOf(store, 'a')).toEqual(['busy']);
  await completeAll('a');
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  expect(awake()).toEqual(['b']);
  const [{ id: requestId }] = executor('b').submitted as [RowRequest];
  executor('b').emit([{ type: 'progress', requestId, index: 0, done: 1, total: 2 }]);
  await expect.poll(() => loadingMsOf(store, id)).toBe(0);
});

it('waits no longer than it must: then one that works takes nothing new, ends what it has, and makes room', async () => {
  const { store, ask, awake, executor, completeAll } = await openModels(
    { a: 60, b: 60 },
    { budget: 100, maxWaitMs: 1 },
  );
  const first = await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  await ask('b');
  await expect.poll(() => workersOf(store, 'a')).toEqual(['loading']);
  const late = await submit(store, { model: 'a' });
  const lease = { workerId: 'w-a', isExclusive: false, requestIds: [late] };
  expect(await dispatchRequests(store, 'a', [lease])).toMatchObject([{ status: 'waiting' }]);
  expect(awake()).toEqual(['a']);
  await completeAll('a');
  expect(await stateOf(store, first)).toBe('succeeded');
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  expect(awake()).toEqual(['b']);
  await expect.poll(() => workersOf(store, 'a')).toEqual(['asleep']);
});

it('of those that work the one used least lately makes room', async () => {
  const { store, ask, executor } = await openModels({ a: 40, b: 40, c: 40 }, { budget: 100, maxWaitMs: 1 });
  for (const model of ['a', 'b', 'a']) await ask(model);
  await expect.poll(() => executor('a').submitted).toHaveLength(2);
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  await ask('c');
  await expect.poll(() => workersOf(store, 'b')).toEqual(['loading']);
  expect(await workersOf(store, 'a')).toEqual(['busy']);
});

it('two that wait for one room get it one after the other, the first first', async () => {
  const { ask, awake, executor, completeAll } = await openModels(
    { a: 60, b: 60, c: 60 },
    { budget: 100, maxWaitMs: 1 },
  );
  await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  for (const model of ['c', 'b']) await ask(model);
  await completeAll('a');
  await expect.poll(awake).toEqual(['c']);
  await expect.poll(() => executor('c').submitted).toHaveLength(1);
  await completeAll('c');
  await expect.poll(awake).toEqual(['b']);
});

it('one that would find room does not overtake one that needs more', async () => {
  const { store, ask, awake, executor, completeAll } = await openModels({ a: 60, big: 90, s: 10 }, { budget: 100 });
  await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  for (const model of ['big', 's']) {
    const id = await ask(model);
    await expect.poll(() => types(store, id)).toContain('loading');
  }
  expect(awake()).toEqual(['a']);
  await completeAll('a');
  await expect.poll(awake).toEqual(['big', 's']);
});

it('whose request is canceled while it waits is not loaded, and nobody makes room for it', async () => {
  const { store, ask, awake, executor, completeAll } = await openModels({ a: 60, b: 60, c: 60 }, { budget: 100 });
  await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  const id = await ask('b');
  await expect.poll(() => types(store, id)).toContain('loading');
  await cancelRequest(store, id);
  await expect.poll(() => stateOf(store, id)).toBe('canceled');
  await completeAll('a');
  expect(awake()).toEqual(['a']);
  await ask('c');
  await expect.poll(awake).toEqual(['c']);
  await expect.poll(() => executor('c').submitted).toHaveLength(1);
  expect(executor('b').loads).toBe(0);
  // And it can be asked for again.
  await completeAll('c');
  await ask('b');
  await expect.poll(awake).toEqual(['b']);
});

it('says what the last load took, though whoever measured it is gone', async () => {
  const first = await openModels({ a: 60 }, { budget: 100, host: 'one' });
  const { store } = first;
  const load = first.executor('a').holdLoad();
  const unknown = await first.ask('a');
  await expect.poll(() => types(store, unknown)).toContain('loading');
  expect((await readEvents(store, unknown, { after: 2 }))[0]).not.toHaveProperty('expectedMs');
  load.fail();
  await expect.poll(first.awake).toEqual(['a']);
  await first.worker('a').stop();
  await store.redis.hset(store.keysOf('a').tally, 'loadMs', 7000);
  const second = await openModels({ a: 60 }, { budget: 100, host: 'two', store });
  const again = second.executor('a').holdLoad();
  const id = await second.ask('a');
  await expect.poll(() => types(store, id)).toContain('loading');
  expect(await readEvents(store, id, { after: 2 })).toMatchObject([{ type: 'loading', expectedMs: 7000 }]);
  again.fail();
});

it('one that cannot be loaded takes no room and no leases, and says why; its request goes back, which is no attempt', async () => {
  const bench = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const { store, ask, awake, executor, completeAll } = bench;
  const load = executor('a').holdLoad();
  const id = await ask('a');
  await expect.poll(() => executor('a').loads).toBe(1);
  await ask('b');
  load.fail();
  await expect.poll(awake).toEqual(['b']);
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0 } });
  expect(await readLoadFailures(store)).toMatchObject([{ model: 'a' }]);
  expect(await workersOf(store, 'a')).toEqual(['loading']);
  // It waits for its turn to be tried again.
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  await completeAll('b');
  await expect.poll(awake).toEqual(['a']);
  await expect.poll(() => workersOf(store, 'a')).toEqual(['idle']);
  expect(await readLoadFailures(store)).toEqual([]);
});

it('is loaded anew where it is awake: it ends what it has, and gets nothing meanwhile', async () => {
  const { store, ask, awake, executor, completeAll } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const id = await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  await askWorker(store, { model: 'a', workerId: 'w-a' }, 'reload');
  await expect.poll(() => workersOf(store, 'a')).toEqual(['loading']);
  await completeAll('a');
  expect(await stateOf(store, id)).toBe('succeeded');
  await expect.poll(() => workersOf(store, 'a')).toEqual(['idle']);
  expect([awake(), executor('a').loads]).toEqual([['a'], 2]);
});

it('leaves its room to whoever waits for it in place of being loaded anew', async () => {
  const { store, ask, awake, executor, completeAll } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  await ask('b');
  await askWorker(store, { model: 'a', workerId: 'w-a' }, 'reload');
  await completeAll('a');
  await expect.poll(awake).toEqual(['b']);
  await expect.poll(() => workersOf(store, 'a')).toEqual(['asleep']);
});

it('one that sleeps is loaded anew with its next lease only', async () => {
  const { store, ask, awake, executor } = await openModels({ a: 60 }, { budget: 100 });
  await askWorker(store, { model: 'a', workerId: 'w-a' }, 'reload');
  await askWorker(store, { model: 'a', workerId: 'w-a' }, 'check_health', { call: 'heard' });
  await expect.poll(() => readAnswers(store, [{ model: 'a', workerId: 'w-a' }], 'heard')).toMatchObject([{}]);
  expect([awake(), executor('a').loads]).toEqual([[], 0]);
  await ask('a');
  await expect.poll(awake).toEqual(['a']);
});

it('sleeps, if it is told to, while it waits to be tried again', async () => {
  const { store, ask, awake, executor, completeAll } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const load = executor('a').holdLoad();
  await ask('a');
  await expect.poll(() => executor('a').loads).toBe(1);
  await ask('b');
  load.fail();
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  expect(await workersOf(store, 'a')).toEqual(['loading']);
  await askWorker(store, { model: 'a', workerId: 'w-a' }, 'sleep');
  await expect.poll(() => workersOf(store, 'a')).toEqual(['asleep']);
  await completeAll('b');
  expect(awake()).toEqual(['b']);
});

it('hears what else is said while what came before is read, and while it waits for room', async () => {
  const { store, ask, awake, executor } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const id = await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  const { id: requestId } = executor('a').submitted.pop()!;
  executor('a').emit([{ type: 'request-lost', requestId, message: 'it broke off' }]);
  await expect.poll(() => stateOf(store, id)).toBe('queued');
  // It ran before, so what there is of it is read.
  let goOn!: () => void;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  const reading = vi.spyOn(store.redis, 'mgetBuffer').mockImplementation(() => held.then(() => [null]));
  await dispatchRequests(store, 'a', [{ workerId: 'w-a', isExclusive: false, requestIds: [id] }]);
  await expect.poll(() => reading.mock.calls).toHaveLength(1);
  const health = async (call: string) => {
    await askWorker(store, { model: 'a', workerId: 'w-a' }, 'check_health', { call });
    await expect.poll(() => readAnswers(store, [{ model: 'a', workerId: 'w-a' }], call)).not.toEqual([undefined]);
    return (await readAnswers(store, [{ model: 'a', workerId: 'w-a' }], call))[0];
  };
  expect(await health('while it reads')).toMatchObject({ state: 'ready' });
  await ask('b');
  executor('a').lose();
  await expect.poll(awake).toEqual(['b']);
  goOn();
  await expect.poll(() => loadingMsOf(store, id)).toBeGreaterThan(500_000);
  expect(await health('while it waits')).toMatchObject({ state: 'asleep' });
  await cancelRequest(store, id);
  await expect.poll(() => stateOf(store, id)).toBe('canceled');
});

it('stops while it waits: what it had goes back, and that is no attempt', async () => {
  const bench = await openModels({ a: 60, b: 60, c: 60 }, { budget: 100 });
  const { store, ask, awake, executor, worker, completeAll } = bench;
  await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  const id = await ask('b');
  await expect.poll(() => types(store, id)).toContain('loading');
  await worker('b').stop();
  expect(await readEvents(store, id, { after: 3 })).toMatchObject([{ type: 'queued', attempt: 1 }]);
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0, loadingMs: 0 } });
  await completeAll('a');
  await ask('c');
  await expect.poll(awake).toEqual(['c']);
  expect(executor('b').loads).toBe(0);
});

it('leaves its room to others when it stops', async () => {
  const { ask, awake, executor, worker } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  await ask('b');
  await worker('a').stop();
  await expect.poll(awake).toEqual(['b']);
});

it('an engine that dies leaves its room to whoever waits, and takes its turn again', async () => {
  const { store, ask, awake, executor, completeAll } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const id = await ask('a');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  await ask('b');
  executor('a').lose(executor('a').submitted.splice(0)[0]!.id);
  await expect.poll(awake).toEqual(['b']);
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  await expect.poll(() => workersOf(store, 'a')).toEqual(['asleep']);
  const lease = { workerId: 'w-a', isExclusive: false, requestIds: [id] };
  await dispatchRequests(store, 'a', [lease]);
  await expect.poll(() => types(store, id)).toHaveLength(6);
  expect(awake()).toEqual(['b']);
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  await completeAll('b');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
});

it('of several machines the one where the model is awake gets what it has room for, and then one that must load', async () => {
  const first = await openModels({ a: 60, b: 60 }, { budget: 100, host: 'one' });
  const { store } = first;
  const second = await openModels({ a: 60 }, { budget: 100, host: 'two', store });
  const submitted = (one: typeof first): number => one.executor('a').submitted.length;
  await second.ask('a');
  await expect.poll(() => submitted(second)).toBe(1);
  const former = openFormer(store);
  // Four places each; one is taken.
  for (let count = 0; count < 3; count++) await submit(store, { model: 'a' });
  await former.runOnce('a');
  await expect.poll(() => submitted(second)).toBe(4);
  expect(first.awake()).toEqual([]);
  await submit(store, { model: 'a' });
  await former.runOnce('a');
  await expect.poll(() => submitted(first)).toBe(1);
});

it('one that waits for room gets nothing while the model is awake elsewhere', async () => {
  const first = await openModels({ a: 60, b: 60 }, { budget: 100, host: 'one' });
  const { store } = first;
  const second = await openModels({ a: 60 }, { budget: 100, host: 'two', store });
  await first.ask('b');
  await expect.poll(() => first.executor('b').submitted).toHaveLength(1);
  const waiting = await first.ask('a');
  await expect.poll(() => types(store, waiting)).toContain('loading');
  for (let count = 0; count < 3; count++) await second.ask('a');
  await submit(store, { model: 'a' });
  await openFormer(store).runOnce('a');
  await expect.poll(() => second.executor('a').submitted).toHaveLength(4);
  expect(first.worker('a').requestIds).toEqual([waiting]);
});

it('is loaded for an operator as for a request, and stays until somebody else needs the room', async () => {
  const { store, ask, awake } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  await askWorker(store, { model: 'a', workerId: 'w-a' }, 'wake');
  await expect.poll(awake).toEqual(['a']);
  await ask('b');
  await expect.poll(awake).toEqual(['b']);
});

it('takes what it was measured to take: others make room for that, and the next load counts with it', async () => {
  const { ask, awake, executor, completeAll, keeper } = await openModels(
    { a: 40, b: 80 },
    { budget: 100, thought: { a: 40, b: 40 } },
  );
  for (const model of ['a', 'b']) {
    await ask(model);
    await expect.poll(() => executor(model).submitted).toHaveLength(1);
    await completeAll(model);
  }
  await expect.poll(awake).toEqual(['b']);
  expect(keeper.heldBytes).toBe(80);
  await ask('a');
  await expect.poll(awake).toEqual(['a']);
});

it('one that grows while it works takes the room of one without work', async () => {
  const bench = await openModels({ a: 40, b: 40 }, { budget: 100 });
  const { ask, awake, executor, completeAll, keeper, worker } = bench;
  for (const model of ['a', 'b']) {
    await ask(model);
    await expect.poll(() => executor(model).submitted).toHaveLength(1);
  }
  await completeAll('a');
  executor('b').bytes = 70;
  await worker('b').beatOnce();
  await expect.poll(awake).toEqual(['b']);
  expect(keeper.heldBytes).toBe(70);
  // Alone it may take all there is, and no more is counted.
  executor('b').bytes = 170;
  await worker('b').beatOnce();
  await expect.poll(() => keeper.heldBytes).toBe(100);
  expect(awake()).toEqual(['b']);
});

it('one that takes more than all may is not served, and says how much it is', async () => {
  const { store, ask, awake, executor } = await openModels({ a: 150e6 }, { budget: 100e6, thought: { a: 50e6 } });
  const id = await ask('a');
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  expect(awake()).toEqual([]);
  const reason = 'a takes 150 MB of memory, and MEMORY_BUDGET_MB is 100';
  expect(await readLoadFailures(store)).toMatchObject([{ model: 'a', reason }]);
  expect(await workersOf(store, 'a')).toEqual(['loading']);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  // It is known now, and not loaded in vain when it is tried again.
  const triedAtMs = async () => (await readLoadFailures(store))[0]!.failedAtMs;
  const before = await triedAtMs();
  await expect.poll(triedAtMs).toBeGreaterThan(before);
  expect(executor('a').loads).toBe(1);
});
