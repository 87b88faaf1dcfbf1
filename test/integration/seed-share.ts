import { createRequestId } from '@darkroom/core';
import type { StoreConnection } from '@darkroom/store';
import { seedRequest } from '@darkroom/testing';

/** Stores a queued request of an owner in a shard. Resolves with its id. */
export async function seedShare(
  store: StoreConnection,
  { owner, weight, shard }: { owner: string; weight: number; shard: string },
): Promise<string> {
  const id = createRequestId({ model: shard, nowMs: Date.now(), owner, secret: 'test' });
  return (await seedRequest(store, { id, owner, options: { weight } })).id;
}
