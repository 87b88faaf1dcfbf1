import { expect, it } from 'vitest';
import { createCached } from './cached.ts';

it('is read again after its maximum age, and when the clock was set back', async () => {
  let nowMs = Date.parse('2026-01-01');
  let reads = 0;
  const cached = createCached({ now: () => nowMs }, () => Promise.resolve(++reads));
  const readAfter = (ms: number): Promise<number> => {
    nowMs += ms;
    return cached.get();
  };
  expect(await readAfter(0)).toBe(1);
  expect(await readAfter(999)).toBe(1);
  expect(await readAfter(1)).toBe(2);
  expect(await readAfter(-86_400_000)).toBe(3);
  expect(await readAfter(999)).toBe(3);
});
