import { expect, it } from 'vitest';
import { OwnerTurns } from './owner-turns.ts';

/** Starts a job for each owner named, in this order, and records the order in which turns are granted. */
async function grantOrder(turns: OwnerTurns, owners: readonly string[]): Promise<string[]> {
  const granted: string[] = [];
  await Promise.all(
    owners.map(async (owner, index) => {
      const release = await turns.acquire(owner);
      granted.push(`${owner}${index}`);
      release?.();
    }),
  );
  return granted;
}

it('grants waiting owners turns in rotation, and each owner its own in order', async () => {
  const turns = new OwnerTurns({ concurrency: 1, maxWaitingPerOwner: 10 });
  const release = await turns.acquire('first');
  const order = grantOrder(turns, ['a', 'a', 'a', 'b', 'c', 'b']);
  release!();
  expect(await order).toEqual(['a0', 'b3', 'c4', 'a1', 'b5', 'a2']);
});

it('holds no more turns at a time than its concurrency', async () => {
  const turns = new OwnerTurns({ concurrency: 2, maxWaitingPerOwner: 10 });
  const first = await turns.acquire('a');
  await turns.acquire('a');
  let isGranted = false;
  const third = turns.acquire('b').then(() => (isGranted = true));
  await Promise.resolve();
  expect(isGranted).toBe(false);
  first!();
  first!();
  await third;
  expect(isGranted).toBe(true);
});

it('refuses an owner with too much waiting, and no other owner', async () => {
  const turns = new OwnerTurns({ concurrency: 1, maxWaitingPerOwner: 1 });
  const release = await turns.acquire('a');
  const waiting = turns.acquire('a');
  expect(await turns.acquire('a')).toBeUndefined();
  const other = turns.acquire('b');
  release!();
  (await waiting)!();
  expect(await other).toBeTypeOf('function');
});

it('forgets a waiter whose signal aborts', async () => {
  const turns = new OwnerTurns({ concurrency: 1, maxWaitingPerOwner: 1 });
  const release = await turns.acquire('a');
  const leaving = new AbortController();
  const left = turns.acquire('a', leaving.signal);
  const next = turns.acquire('b');
  leaving.abort(new Error('disconnected'));
  await expect(left).rejects.toThrow('disconnected');
  release!();
  expect(await next).toBeTypeOf('function');
  await expect(turns.acquire('a', leaving.signal)).rejects.toThrow('disconnected');
});

it('limits the turns of one owner, and keeps the order of each owner', async () => {
  const turns = new OwnerTurns({ concurrency: 3, maxHeldBy: () => 1 });
  const first = await turns.acquire('alice');
  const granted: string[] = [];
  const second = turns.acquire('alice').then((release) => (granted.push('second'), release));
  const third = turns.acquire('alice').then((release) => (granted.push('third'), release));
  await turns.acquire('bob');
  expect(granted).toEqual([]);
  first!();
  (await second)!();
  await third;
  expect(granted).toEqual(['second', 'third']);
});

it('starts a turn at once or not at all; ending the same turn again has no effect', () => {
  const turns = new OwnerTurns({ maxHeldBy: () => 1 });
  const release = turns.take('a');
  expect(turns.take('a')).toBeUndefined();
  expect(turns.take('b')).toBeDefined();
  release?.();
  const second = turns.take('a');
  expect(second).toBeDefined();
  release?.();
  expect(turns.take('a')).toBeUndefined();
});
