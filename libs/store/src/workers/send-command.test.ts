import { allKeys, openTestStore, seedWorker } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { sendCommand, drainWorker, openInbox, sendMove, unregisterWorker } from '../index.ts';

const name = { shard: 'tiny', workerId: 'w1' };
const anotherIncarnation = { ...name, incarnation: 'second' };

it("appends commands to the worker's inbox in order", async () => {
  const store = openTestStore();
  await seedWorker(store);
  expect(await sendCommand(store, name, { type: 'wake' })).toBe(true);
  expect(await sendCommand(store, name, { type: 'memory', call: 'c1' })).toBe(true);
  await sendMove(store, { workerId: 'w1', from: 'tiny', to: 'tiny~1', isPatient: true });
  const inbox = openInbox(store, () => name);
  onTestFinished(() => inbox.close());
  expect(await inbox.next(1)).toEqual([
    { type: 'wake' },
    { type: 'memory', call: 'c1' },
    { type: 'move', to: 'tiny~1', isPatient: true },
  ]);
});

it('creates no inbox for a command to an unknown worker', async () => {
  const store = openTestStore();
  expect(await sendCommand(store, name, { type: 'sleep' })).toBe(false);
  expect(await allKeys(store)).toEqual([]);
});

it('neither drains nor unregisters another incarnation of the worker', async () => {
  const store = openTestStore();
  await seedWorker(store);
  const before = await allKeys(store);
  expect(await drainWorker(store, anotherIncarnation)).toBe(false);
  await unregisterWorker(store, anotherIncarnation);
  expect(await allKeys(store)).toEqual(before);
  expect(await store.redis.hget(store.keysOf('tiny').worker('w1'), 'list')).toBe('idle');
});
