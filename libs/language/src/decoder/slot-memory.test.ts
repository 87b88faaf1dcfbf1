import { expect, it } from 'vitest';
import { SlotCache } from './slot-buffers.ts';
import { SlotMemory } from './slot-memory.ts';

const kind = { shape: { tensors: 2, heads: 1, width: 1 }, Numbers: Float32Array };

/** Rows that have slots. */
function claim(memory: SlotMemory, count: number, length: number): SlotCache[] {
  return Array.from({ length: count }, () => {
    const cache = new SlotCache(0);
    while (!memory.make(memory.roomFor(1, length), Infinity));
    memory.claim(cache);
    cache.length = length;
    return cache;
  });
}

it('has no more longer slots than there are rows for, once those that may go have heard of it and gone', () => {
  const memory = new SlotMemory(kind);
  const kept = claim(memory, 64, 20);
  expect([memory.buffers.owners.length, memory.columns]).toEqual([64, 64]);
  const heard: number[] = [];
  memory.beforeGrowth = (columns) => {
    heard.push(columns);
    while (kept.length * columns > 4096) memory.release(kept.shift()!);
  };
  while (!memory.make(memory.roomFor(1, 4000), Infinity));
  expect(heard[0]).toBe(4032);
  expect(kept).toHaveLength(1);
  expect(memory.columns).toBe(4032);
  // The one that is kept, and the one that comes.
  expect(memory.buffers.owners).toHaveLength(2);
});

it('says nothing of a room that there is, and nothing twice', () => {
  const memory = new SlotMemory(kind);
  const heard: number[] = [];
  memory.beforeGrowth = (columns) => heard.push(columns);
  const rows = claim(memory, 8, 40);
  expect(heard).toEqual([]);
  for (const row of rows) row.length = 200;
  while (!memory.make(memory.roomFor(0, 0)));
  for (let call = 0; call < 20; call++) memory.noteCall();
  expect(heard).toEqual([256]);
});
