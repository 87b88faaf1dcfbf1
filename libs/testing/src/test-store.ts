/** A store of a test's own: a random prefix on the run's private Redis, emptied afterwards. */
import { randomUUID } from 'node:crypto';
import { createRequestId, type RequestEnvelope } from '@darkroom/core';
import { type ConnectStoreOptions, connectStore, type StoreConnection } from '@darkroom/store';
import { inject, onTestFinished } from 'vitest';

export type TestStoreOptions = Partial<Omit<ConnectStoreOptions, 'url'>>;

/** Connects with a fresh prefix and removes every key of it when the test is over. */
export function openTestStore(options: TestStoreOptions = {}): StoreConnection {
  const store = connectStore({ url: inject('redisUrl'), prefix: `test-${randomUUID()}`, ...options });
  onTestFinished(async () => {
    if (options.prefix === undefined) {
      const keys = await allKeys(store);
      if (keys.length > 0) await store.redis.unlink(...keys);
    }
    await store.close();
  });
  return store;
}

/** Every key under the store's prefix, sorted. */
export async function allKeys(store: StoreConnection): Promise<string[]> {
  const keys = await store.redis.keys(`${store.prefix}:*`);
  return keys.toSorted();
}

/** An envelope that is valid in every field, with what a test cares about on top. */
export function testEnvelope(overrides: Partial<RequestEnvelope> = {}): RequestEnvelope {
  const model = overrides.model ?? 'tiny';
  const createdAtMs = overrides.createdAtMs ?? Date.now();
  return {
    id: createRequestId({ model, nowMs: createdAtMs }),
    model,
    owner: '',
    shapeKey: '128x128',
    rows: 1,
    cost: 1,
    priority: 5,
    createdAtMs,
    deadlineMs: createdAtMs + 600_000,
    startDeadlineMs: createdAtMs + 600_000,
    input: { prompt: 'a test' },
    ...overrides,
  };
}
