/** What a worker does with what only an executor in front of another server says. */
import { readRequest } from '@darkroom/store';
import { expect, it } from 'vitest';
import { FakeExecutor, free, lease, openBench, stateOf, submit } from './worker-bench.ts';

class FoundRoom extends FakeExecutor {
  maxSlots = 2;
}

it('has the room that the server says', async () => {
  let executor: FoundRoom | undefined;
  const { store, worker } = openBench({ createExecutor: (listener) => (executor = new FoundRoom(listener)) });
  await worker.start();
  expect(await free(store)).toEqual([1, 2]);
  // Another server may have come in its place.
  executor!.maxSlots = 3;
  executor!.lose();
  await expect.poll(() => free(store)).toEqual([1, 3]);
});

it('gives back one request that was lost, with its attempt counted, and goes on with the others', async () => {
  const { store, worker, executor } = openBench();
  await worker.start();
  const [lost, other] = [await submit(store), await submit(store)];
  await lease(store, lost);
  await lease(store, other);
  await expect.poll(() => executor.submitted).toHaveLength(2);
  const [one, two] = executor.submitted;
  executor.emit([{ type: 'request-lost', requestId: one!.id, message: 'the connection broke off' }]);
  await expect.poll(() => stateOf(store, lost)).toBe('queued');
  expect(await readRequest(store, lost)).toMatchObject({ request: { attempts: 1, queuePosition: 0 } });
  expect(worker.requestIds).toEqual([other]);
  executor.complete(two!.id);
  await expect.poll(() => stateOf(store, other)).toBe('succeeded');
  expect(worker.isReady).toBe(true);
});
