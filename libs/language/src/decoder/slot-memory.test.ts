import { expect, it } from 'vitest';
import { SlotCache } from './slot-buffers.ts';
import { SlotMemory } from './slot-memory.ts';

const kind = { shape: { tensors: 2, heads: 1, width: 1 }, Numbers: Float32Array };

/** Creates rows with slots. */
function claim(memory: SlotMemory, count: number, length: number): SlotCache[] {
  return Array.from({ length: count }, () => {
    const cache = new SlotCache(0);
    while (!memory.grow(memory.capacityFor(1, length), Infinity));
    memory.claim(cache);
    cache.length = length;
    return cache;
  });
}

it('grows slots only for the rows left after beforeGrowth released some', () => {
  const memory = new SlotMemory(kind);
  const rows = claim(memory, 64, 20);
  expect([memory.buffers.owners.length, memory.columns]).toEqual([64, 64]);
  const growths: number[] = [];
  memory.beforeGrowth = (columns) => {
    growths.push(columns);
    while (rows.length * columns > 4096) memory.release(rows.shift()!);
  };
  while (!memory.grow(memory.capacityFor(1, 4000), Infinity));
  expect(growths[0]).toBe(4032);
  expect(rows).toHaveLength(1);
  expect(memory.columns).toBe(4032);
  // The remaining row, and the new one.
  expect(memory.buffers.owners).toHaveLength(2);
});

it('calls beforeGrowth once, and only if slots grow', () => {
  const memory = new SlotMemory(kind);
  const growths: number[] = [];
  memory.beforeGrowth = (columns) => growths.push(columns);
  const rows = claim(memory, 8, 40);
  expect(growths).toEqual([]);
  for (const row of rows) row.length = 200;
  while (!memory.grow(memory.capacityFor(0, 0)));
  for (let call = 0; call < 20; call++) memory.noteCall();
  expect(growths).toEqual([256]);
});
