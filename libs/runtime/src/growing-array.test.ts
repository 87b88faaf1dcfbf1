import { expect, it } from 'vitest';
import { GrowingArray } from './growing-array.ts';

it('grows with the requested size, and shrinks after many smaller requests', () => {
  const memory = new GrowingArray((size) => new Float32Array(size));
  expect(memory.of(1000)).toHaveLength(1000);
  for (let call = 0; call < 100; call++) expect(memory.of(call % 2 === 0 ? 10 : 1000).byteOffset).toBe(0);
  expect(memory.size).toBe(1500);
  for (let call = 0; call < 600; call++) memory.of(10);
  expect(memory.size).toBe(15);
});
