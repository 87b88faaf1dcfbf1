import { silentLogger } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { MemoryKeeper } from './memory-keeper.ts';

const tenant = { wantsMemory: () => true, isGivingUp: () => false, giveUp: () => {} };

it('remembers that a model exceeds the budget, until a restarted worker opens its share again', async () => {
  const keeper = new MemoryKeeper({ budgetBytes: 100, maxWaitMs: 1, log: silentLogger() });
  let bytes = 120;
  const options = { model: 'a', cacheBytes: 0, measure: () => Promise.resolve(bytes) };
  const first = keeper.open({ ...options, minBytes: 0, estimatedBytes: 60 });
  first.attach(tenant);
  expect(await first.acquire()).toBe(true);
  await expect(first.loaded()).rejects.toThrow('MEMORY_BUDGET_MB');
  first.free();
  await expect(first.acquire()).rejects.toThrow('MEMORY_BUDGET_MB');
  bytes = 50;
  const second = keeper.open({ ...options, minBytes: 40, estimatedBytes: 45, cacheBytes: 5 });
  second.attach(tenant);
  expect(await second.acquire()).toBe(true);
  expect(keeper.heldBytes).toBe(45);
  await second.loaded();
  expect(keeper.heldBytes).toBe(55);
  expect(() => keeper.open({ ...options, minBytes: 101, estimatedBytes: 101 })).toThrow('MEMORY_BUDGET_MB');
  second.free();
  expect(await second.acquire()).toBe(true);
  expect(keeper.heldBytes).toBe(55);
});
