import { expect, it } from 'vitest';
import { BodyMemory } from './body-memory.ts';

it('rejects bytes past half of the memory for one owner, but not for another', () => {
  const memory = new BodyMemory(100);
  expect(memory.take('a', 50)).toBe(true);
  expect(memory.take('a', 1)).toBe(false);
  expect(memory.take('b', 50)).toBe(true);
});

it('rejects bytes past the limit of all owners until bytes are freed', () => {
  const memory = new BodyMemory(100);
  for (const owner of ['a', 'b', 'c']) expect(memory.take(owner, 30)).toBe(true);
  expect(memory.take('d', 20)).toBe(false);
  memory.free('b', 30);
  expect(memory.take('d', 20)).toBe(true);
});
