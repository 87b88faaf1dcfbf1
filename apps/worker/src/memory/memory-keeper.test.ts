import { silentLogger } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { MemoryKeeper } from './memory-keeper.ts';

it('forgets what was measured of a model once another lies there', async () => {
  const keeper = new MemoryKeeper({ budgetBytes: 100, maxWaitMs: 1, log: silentLogger() });
  let bytes = 120;
  const measure = (): Promise<number> => Promise.resolve(bytes);
  const place = keeper.open({ model: 'a', leastBytes: 0, estimatedBytes: 60, cacheBytes: 0, measure });
  place.attach({ isWanted: () => true, sleep: () => Promise.resolve(false) });
  expect(await place.take()).toBe(true);
  await expect(place.loaded()).rejects.toThrow('MEMORY_BUDGET_MB');
  place.free();
  await expect(place.take()).rejects.toThrow('MEMORY_BUDGET_MB');
  bytes = 50;
  place.expect({ leastBytes: 40, estimatedBytes: 45, cacheBytes: 5 });
  expect(await place.take()).toBe(true);
  expect(keeper.heldBytes).toBe(45);
  await place.loaded();
  expect(keeper.heldBytes).toBe(55);
  expect(() => place.expect({ leastBytes: 101, estimatedBytes: 101, cacheBytes: 0 })).toThrow('MEMORY_BUDGET_MB');
  // The old files are put back: nobody says again what they need.
  place.free();
  expect(await place.take()).toBe(true);
  expect(keeper.heldBytes).toBe(55);
});
