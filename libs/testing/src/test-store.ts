/** A store for one test: a random prefix on the run's Redis, cleaned up afterwards. */
import { randomUUID } from 'node:crypto';
import { createRequestId, type RequestEnvelope } from '@darkroom/core';
import { type ConnectStoreOptions, connectStore, escapeGlob, type StoreConnection } from '@darkroom/store';
import { inject, onTestFinished } from 'vitest';

export type TestStoreOptions = Partial<Omit<ConnectStoreOptions, 'url'>>;

/** Connects with a new prefix and removes its keys when the test ends. */
export function openTestStore(options: TestStoreOptions = {}): StoreConnection {
  const store = connectStore({ url: inject('redisUrl'), prefix: `test-${randomUUID()}`, ...options });
  onTestFinished(async () => {
    if (options.prefix === undefined) {
      await removeKeys(store);
    }
    await store.close();
  });
  return store;
}

/** Returns all keys under the store's prefix, sorted. */
export async function allKeys(store: StoreConnection): Promise<string[]> {
  const keys = new Set<string>();
  for (const server of store.masters()) {
    let cursor = '0';
    do {
      const [next, page] = await server.scan(cursor, 'MATCH', `${escapeGlob(store.prefix)}:*`, 'COUNT', 500);
      cursor = next;
      for (const key of page) keys.add(key);
    } while (cursor !== '0');
  }
  return [...keys].toSorted();
}

/** Removes all keys under the store's prefix, one command each, since in a Cluster they are in different slots. */
export async function removeKeys(store: StoreConnection): Promise<void> {
  const keys = await allKeys(store);
  await Promise.all(keys.map((key) => store.redis.unlink(key)));
}

/** Returns a valid envelope with the given fields overridden. */
export function testEnvelope(overrides: Partial<RequestEnvelope> = {}): RequestEnvelope {
  const model = overrides.model ?? 'tiny';
  const owner = overrides.owner ?? '';
  return {
    id: createRequestId({ model, nowMs: Date.now(), owner, secret: 'test' }),
    model,
    owner,
    kind: 'image',
    shapeKey: '128x128',
    outputs: 1,
    slots: overrides.outputs ?? 1,
    cost: 1,
    priority: 5,
    timeoutMs: 600_000,
    startTimeoutMs: 600_000,
    input: { prompt: 'a test' },
    ...overrides,
  };
}
