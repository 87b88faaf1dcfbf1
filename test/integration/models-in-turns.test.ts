/** Models that share the memory of one process: which one is loaded, which one is evicted, which one waits. */
import type { RowRequest } from '@darkroom/core';
import {
  sendCommand,
  cancelRequest,
  dispatchRequests,
  listShards,
  readAnswers,
  readEvents,
  readLoadFailures,
  readRequest,
  type StoreConnection,
} from '@darkroom/store';
import { expect, it, vi } from 'vitest';
import { openModels } from './models-bench.ts';
import { openFormer } from './open-former.ts';
import { stateOf, submit, types, workerStates } from './worker-bench.ts';

async function loadingMsOf(store: StoreConnection, id: string): Promise<number | undefined> {
  const result = await readRequest(store, id);
  return result.status === 'found' ? result.request.loadingMs : undefined;
}

it('loads a model on its first request and evicts the least recently used idle one', async () => {
  const { store, awake, completeAll, executor, runRequest } = await openModels(
    { a: 40, b: 40, c: 40 },
    { budget: 100 },
  );
  expect(awake()).toEqual([]);
  expect((await listShards(store)).toSorted()).toEqual(['a', 'b', 'c']);
  for (const model of ['a', 'b', 'a']) {
    const id = await runRequest(model);
    await completeAll(model);
    expect(await stateOf(store, id)).toBe('succeeded');
  }
  await runRequest('c');
  expect(awake()).toEqual(['a', 'c']);
  expect(['a', 'b', 'c'].map((model) => executor(model).loads)).toEqual([1, 1, 1]);
  expect(await workerStates(store, 'b')).toEqual(['asleep']);
});

it('keeps all models loaded when there is no memory budget', async () => {
  const { leaseRequest, awake } = await openModels({ a: 40, b: 40, c: 40 }, { budget: Infinity });
  for (const model of ['a', 'b', 'c']) await leaseRequest(model);
  await expect.poll(awake).toEqual(['a', 'b', 'c']);
});

it('does not evict a busy model: a request for another reports "loading" until that one is idle', async () => {
  const { store, leaseRequest, awake, executor, completeAll, runRequest } = await openModels(
    { a: 60, b: 60 },
    { budget: 100 },
  );
  await runRequest('a');
  const id = await leaseRequest('b');
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading']);
  // It may wait for up to `maxWaitMs`.
  expect(await readEvents(store, id, { after: 2 })).toMatchObject([{ type: 'loading', expectedMs: 600_000 }]);
  expect(await loadingMsOf(store, id)).toBeGreaterThan(500_000);
  expect(awake()).toEqual(['a']);
  expect(await workerStates(store, 'a')).toEqual(['busy']);
  await completeAll('a');
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  expect(awake()).toEqual(['b']);
  const [{ id: requestId }] = executor('b').submitted as [RowRequest];
  executor('b').emit([{ type: 'progress', requestId, index: 0, done: 1, total: 2 }]);
  await expect.poll(() => loadingMsOf(store, id)).toBe(0);
});

it('after maxWaitMs a busy model takes no more leases, finishes its requests and is evicted', async () => {
  const { store, leaseRequest, awake, executor, completeAll, runRequest } = await openModels(
    { a: 60, b: 60 },
    { budget: 100, maxWaitMs: 1 },
  );
  const first = await runRequest('a');
  await leaseRequest('b');
  await expect.poll(() => workerStates(store, 'a')).toEqual(['loading']);
  const late = await submit(store, { model: 'a' });
  const lease = { workerId: 'w-a', isExclusive: false, requestIds: [late] };
  expect(await dispatchRequests(store, 'a', [lease])).toMatchObject([{ status: 'waiting' }]);
  expect(awake()).toEqual(['a']);
  await completeAll('a');
  expect(await stateOf(store, first)).toBe('succeeded');
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  expect(awake()).toEqual(['b']);
  await expect.poll(() => workerStates(store, 'a')).toEqual(['asleep']);
});

it('evicts the least recently used of the busy models', async () => {
  const { store, leaseRequest, executor } = await openModels({ a: 40, b: 40, c: 40 }, { budget: 100, maxWaitMs: 1 });
  for (const model of ['a', 'b', 'a']) await leaseRequest(model);
  await expect.poll(() => executor('a').submitted).toHaveLength(2);
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  await leaseRequest('c');
  await expect.poll(() => workerStates(store, 'b')).toEqual(['loading']);
  expect(await workerStates(store, 'a')).toEqual(['busy']);
});

it('loads waiting models one after the other, first come, first served', async () => {
  const { leaseRequest, awake, executor, completeAll, runRequest } = await openModels(
    { a: 60, b: 60, c: 60 },
    { budget: 100, maxWaitMs: 1 },
  );
  await runRequest('a');
  for (const model of ['c', 'b']) await leaseRequest(model);
  await completeAll('a');
  await expect.poll(awake).toEqual(['c']);
  await expect.poll(() => executor('c').submitted).toHaveLength(1);
  await completeAll('c');
  await expect.poll(awake).toEqual(['b']);
});

it('a waiting model that would fit does not overtake one that needs more memory', async () => {
  const { store, leaseRequest, awake, completeAll, runRequest } = await openModels(
    { a: 60, big: 90, s: 10 },
    { budget: 100 },
  );
  await runRequest('a');
  for (const model of ['big', 's']) {
    const id = await leaseRequest(model);
    await expect.poll(() => types(store, id)).toContain('loading');
  }
  expect(awake()).toEqual(['a']);
  await completeAll('a');
  await expect.poll(awake).toEqual(['big', 's']);
});

it('a model whose only request is canceled while it waits is not loaded, and no other is evicted for it', async () => {
  const { store, leaseRequest, awake, executor, completeAll, runRequest } = await openModels(
    { a: 60, b: 60, c: 60 },
    { budget: 100 },
  );
  await runRequest('a');
  const id = await leaseRequest('b');
  await expect.poll(() => types(store, id)).toContain('loading');
  await cancelRequest(store, id);
  await expect.poll(() => stateOf(store, id)).toBe('canceled');
  await completeAll('a');
  expect(awake()).toEqual(['a']);
  await leaseRequest('c');
  await expect.poll(awake).toEqual(['c']);
  await expect.poll(() => executor('c').submitted).toHaveLength(1);
  expect(executor('b').loads).toBe(0);
  // A later request loads it.
  await completeAll('c');
  await leaseRequest('b');
  await expect.poll(awake).toEqual(['b']);
});

it('reports the duration of the last load, even if the worker that measured it has gone', async () => {
  const first = await openModels({ a: 60 }, { budget: 100, host: 'one' });
  const { store } = first;
  const load = first.executor('a').holdLoad();
  const unknown = await first.leaseRequest('a');
  await expect.poll(() => types(store, unknown)).toContain('loading');
  expect((await readEvents(store, unknown, { after: 2 }))[0]).not.toHaveProperty('expectedMs');
  load.fail();
  await expect.poll(first.awake).toEqual(['a']);
  await first.worker('a').stop();
  await store.redis.hset(store.keysOf('a').counters, 'loadMs', 7000);
  const second = await openModels({ a: 60 }, { budget: 100, host: 'two', store });
  const again = second.executor('a').holdLoad();
  const id = await second.leaseRequest('a');
  await expect.poll(() => types(store, id)).toContain('loading');
  expect(await readEvents(store, id, { after: 2 })).toMatchObject([{ type: 'loading', expectedMs: 7000 }]);
  again.fail();
});

it('a failed load frees its memory, reports why and requeues the request without counting an attempt', async () => {
  const bench = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const { store, leaseRequest, awake, executor, completeAll } = bench;
  const load = executor('a').holdLoad();
  const id = await leaseRequest('a');
  await expect.poll(() => executor('a').loads).toBe(1);
  const waiting = await leaseRequest('b');
  await expect.poll(() => types(store, waiting)).toContain('loading');
  load.fail();
  await expect.poll(awake).toEqual(['b']);
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0 } });
  expect(await readLoadFailures(store)).toMatchObject([{ model: 'a' }]);
  expect(await workerStates(store, 'a')).toEqual(['loading']);
  // It waits before the load is retried.
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  await completeAll('b');
  await expect.poll(awake).toEqual(['a']);
  await expect.poll(() => workerStates(store, 'a')).toEqual(['idle']);
  expect(await readLoadFailures(store)).toEqual([]);
});

it('restart: a loaded model requeues its requests, and is loaded with its next lease', async () => {
  const { store, runRequest, awake, executor } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const id = await runRequest('a');
  await sendCommand(store, { shard: 'a', workerId: 'w-a' }, { type: 'restart' });
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  await expect.poll(() => workerStates(store, 'a')).toEqual(['asleep']);
  expect([awake(), executor('a').loads]).toEqual([[], 0]);
  await dispatchRequests(store, 'a', [{ workerId: 'w-a', isExclusive: false, requestIds: [id] }]);
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
  expect([awake(), executor('a').loads]).toEqual([['a'], 1]);
});

it('restart: its memory goes to a model that waits for it', async () => {
  const { store, leaseRequest, runRequest, awake } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  await runRequest('a');
  await leaseRequest('b');
  await sendCommand(store, { shard: 'a', workerId: 'w-a' }, { type: 'restart' });
  await expect.poll(awake).toEqual(['b']);
  await expect.poll(() => workerStates(store, 'a')).toEqual(['asleep']);
});

it('restart: an asleep model is loaded only with its next lease', async () => {
  const { store, leaseRequest, awake, executor } = await openModels({ a: 60 }, { budget: 100 });
  const before = executor('a');
  await sendCommand(store, { shard: 'a', workerId: 'w-a' }, { type: 'restart' });
  await sendCommand(store, { shard: 'a', workerId: 'w-a' }, { type: 'check_health', call: 'restarted' });
  await expect.poll(() => readAnswers(store, [{ shard: 'a', workerId: 'w-a' }], 'restarted')).toMatchObject([{}]);
  expect([awake(), executor('a').loads]).toEqual([[], 0]);
  await leaseRequest('a');
  await expect.poll(awake).toEqual(['a']);
  // The worker was not replaced.
  expect(executor('a')).toBe(before);
});

it('sleep: stops retrying a failed load', async () => {
  const { store, leaseRequest, awake, executor, completeAll } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const load = executor('a').holdLoad();
  await leaseRequest('a');
  await expect.poll(() => executor('a').loads).toBe(1);
  const waiting = await leaseRequest('b');
  await expect.poll(() => types(store, waiting)).toContain('loading');
  load.fail();
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  expect(await workerStates(store, 'a')).toEqual(['loading']);
  await sendCommand(store, { shard: 'a', workerId: 'w-a' }, { type: 'sleep' });
  await expect.poll(() => workerStates(store, 'a')).toEqual(['asleep']);
  await completeAll('b');
  expect(awake()).toEqual(['b']);
});

it('answers operators while it reads checkpoints and while it waits for memory', async () => {
  const { store, leaseRequest, awake, executor, runRequest } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  const id = await runRequest('a');
  const { id: requestId } = executor('a').submitted.pop()!;
  executor('a').emit([{ type: 'request-lost', requestId, message: 'it broke off' }]);
  await expect.poll(() => stateOf(store, id)).toBe('queued');
  // The request ran before, so the worker reads its checkpoints.
  let goOn!: () => void;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  const reading = vi.spyOn(store.redis, 'mgetBuffer').mockImplementation(() => held.then(() => [null]));
  await dispatchRequests(store, 'a', [{ workerId: 'w-a', isExclusive: false, requestIds: [id] }]);
  await expect.poll(() => reading.mock.calls).toHaveLength(1);
  const health = async (call: string) => {
    await sendCommand(store, { shard: 'a', workerId: 'w-a' }, { type: 'check_health', call });
    await expect.poll(() => readAnswers(store, [{ shard: 'a', workerId: 'w-a' }], call)).not.toEqual([undefined]);
    return (await readAnswers(store, [{ shard: 'a', workerId: 'w-a' }], call))[0];
  };
  expect(await health('while it reads')).toMatchObject({ state: 'ready' });
  await leaseRequest('b');
  executor('a').lose();
  await expect.poll(awake).toEqual(['b']);
  goOn();
  await expect.poll(() => loadingMsOf(store, id)).toBeGreaterThan(500_000);
  expect(await health('while it waits')).toMatchObject({ state: 'asleep' });
  await cancelRequest(store, id);
  await expect.poll(() => stateOf(store, id)).toBe('canceled');
});

it('a worker that stops while it waits for memory requeues its request without counting an attempt', async () => {
  const bench = await openModels({ a: 60, b: 60, c: 60 }, { budget: 100 });
  const { store, leaseRequest, awake, executor, worker, completeAll, runRequest } = bench;
  await runRequest('a');
  const id = await leaseRequest('b');
  await expect.poll(() => types(store, id)).toContain('loading');
  await worker('b').stop();
  expect(await readEvents(store, id, { after: 3 })).toMatchObject([{ type: 'queued', attempt: 1 }]);
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0, loadingMs: 0 } });
  await completeAll('a');
  await leaseRequest('c');
  await expect.poll(awake).toEqual(['c']);
  expect(executor('b').loads).toBe(0);
});

it('a worker that stops frees its memory for others', async () => {
  const { leaseRequest, awake, worker, runRequest } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  await runRequest('a');
  await leaseRequest('b');
  await worker('a').stop();
  await expect.poll(awake).toEqual(['b']);
});

it('an engine that dies frees its memory for a waiting model; its own model waits again', async () => {
  const { store, leaseRequest, awake, executor, completeAll, runRequest } = await openModels(
    { a: 60, b: 60 },
    { budget: 100 },
  );
  const id = await runRequest('a');
  await leaseRequest('b');
  executor('a').lose(executor('a').submitted.splice(0)[0]!.id);
  await expect.poll(awake).toEqual(['b']);
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  await expect.poll(() => workerStates(store, 'a')).toEqual(['asleep']);
  const lease = { workerId: 'w-a', isExclusive: false, requestIds: [id] };
  await dispatchRequests(store, 'a', [lease]);
  await expect.poll(() => types(store, id)).toHaveLength(6);
  expect(awake()).toEqual(['b']);
  await expect.poll(() => executor('b').submitted).toHaveLength(1);
  await completeAll('b');
  await expect.poll(() => executor('a').submitted).toHaveLength(1);
});

it('with several machines, leases go first to a worker whose model is loaded, then to one that loads it', async () => {
  const first = await openModels({ a: 60, b: 60 }, { budget: 100, host: 'one' });
  const { store } = first;
  const second = await openModels({ a: 60 }, { budget: 100, host: 'two', store });
  const submitted = (one: typeof first): number => one.executor('a').submitted.length;
  await second.leaseRequest('a');
  await expect.poll(() => submitted(second)).toBe(1);
  const { former } = openFormer(store);
  // Each worker has four slots; one is taken.
  for (let count = 0; count < 3; count++) await submit(store, { model: 'a' });
  await former.runOnce('a');
  await expect.poll(() => submitted(second)).toBe(4);
  expect(first.awake()).toEqual([]);
  await submit(store, { model: 'a' });
  await former.runOnce('a');
  await expect.poll(() => submitted(first)).toBe(1);
});

it('a worker that waits for memory gets no leases while the model is loaded on another machine', async () => {
  const first = await openModels({ a: 60, b: 60 }, { budget: 100, host: 'one' });
  const { store } = first;
  const second = await openModels({ a: 60 }, { budget: 100, host: 'two', store });
  await first.runRequest('b');
  const waiting = await first.leaseRequest('a');
  await expect.poll(() => types(store, waiting)).toContain('loading');
  for (let count = 0; count < 3; count++) await second.leaseRequest('a');
  await submit(store, { model: 'a' });
  await openFormer(store).runOnce('a');
  await expect.poll(() => second.executor('a').submitted).toHaveLength(4);
  expect(first.worker('a').requestIds).toEqual([waiting]);
});

it('wake: loads the model without a request, until another model needs the memory', async () => {
  const { store, leaseRequest, awake } = await openModels({ a: 60, b: 60 }, { budget: 100 });
  await sendCommand(store, { shard: 'a', workerId: 'w-a' }, { type: 'wake' });
  await expect.poll(awake).toEqual(['a']);
  await leaseRequest('b');
  await expect.poll(awake).toEqual(['b']);
});

it('counts the measured size of a loaded model: evicts others for it, and uses it for the next load', async () => {
  const { leaseRequest, awake, completeAll, keeper, runRequest } = await openModels(
    { a: 40, b: 80 },
    { budget: 100, estimates: { a: 40, b: 40 } },
  );
  for (const model of ['a', 'b']) {
    await runRequest(model);
    await completeAll(model);
  }
  await expect.poll(awake).toEqual(['b']);
  expect(keeper.heldBytes).toBe(80);
  await leaseRequest('a');
  await expect.poll(awake).toEqual(['a']);
});

it('a busy model that grows evicts an idle one', async () => {
  const bench = await openModels({ a: 40, b: 40 }, { budget: 100 });
  const { awake, executor, completeAll, keeper, worker, runRequest } = bench;
  for (const model of ['a', 'b']) {
    await runRequest(model);
  }
  await completeAll('a');
  executor('b').bytes = 70;
  await worker('b').heartbeatOnce();
  await expect.poll(awake).toEqual(['b']);
  expect(keeper.heldBytes).toBe(70);
  // A model that is loaded alone may exceed the budget; at most the budget is counted.
  executor('b').bytes = 170;
  await worker('b').heartbeatOnce();
  await expect.poll(() => keeper.heldBytes).toBe(100);
  expect(awake()).toEqual(['b']);
});

it('a model larger than the memory budget is not served, and reports its size', async () => {
  const { store, leaseRequest, awake, executor } = await openModels(
    { a: 150e6 },
    { budget: 100e6, estimates: { a: 50e6 } },
  );
  const id = await leaseRequest('a');
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  expect(awake()).toEqual([]);
  const reason = 'a needs 150 MB of memory, expected at most MEMORY_BUDGET_MB (100)';
  expect(await readLoadFailures(store)).toMatchObject([{ model: 'a', reason }]);
  expect(await workerStates(store, 'a')).toEqual(['loading']);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  // Its size is known now, so retries do not load it.
  const triedAtMs = async () => (await readLoadFailures(store))[0]!.failedAtMs;
  const before = await triedAtMs();
  await expect.poll(triedAtMs).toBeGreaterThan(before);
  expect(executor('a').loads).toBe(1);
});
