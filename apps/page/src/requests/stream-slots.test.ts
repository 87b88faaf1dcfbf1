import { expect, it } from 'vitest';
import { createStreamSlots, slotCountOf } from './stream-slots.ts';

const never = new AbortController().signal;

function openWork() {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () =>
    new Promise<void>((resolve) => {
      started.push(name);
      ends.set(name, resolve);
    });
  return { started, work, end: (name: string) => ends.get(name)!() };
}

it('runs one task per slot, and queues the others in order', async () => {
  const slots = createStreamSlots(2);
  const { started, work, end } = openWork();
  const runs = ['a', 'b', 'c', 'd'].map((name) => slots.run(never, work(name)));
  await Promise.resolve();
  expect(started).toEqual(['a', 'b']);
  end('b');
  await runs[1];
  end('a');
  await runs[0];
  await Promise.resolve();
  expect(started).toEqual(['a', 'b', 'c', 'd']);
});

it('passes on the slot of a task that failed or was aborted while queued', async () => {
  const slots = createStreamSlots(1);
  const { started, work } = openWork();
  const stop = new AbortController();
  const failing = slots.run(never, () => Promise.reject(new Error('cut')));
  const leaving = slots.run(stop.signal, work('leaving'));
  void slots.run(never, work('next'));
  stop.abort(new Error('left'));
  await expect(leaving).rejects.toThrow('left');
  await expect(failing).rejects.toThrow('cut');
  await Promise.resolve();
  expect(started).toEqual(['next']);
  await expect(slots.run(stop.signal, work('late'))).rejects.toThrow('left');
});

it('leaves some of the HTTP/1.1 connections free', () => {
  expect([slotCountOf('http/1.1'), slotCountOf(undefined), slotCountOf('h2')]).toEqual([4, 4, 24]);
});
