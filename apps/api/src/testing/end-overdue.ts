import { modelOfRequestId } from '@darkroom/core';
import { expireRequests, type StoreConnection } from '@darkroom/store';

/** Expires an open request: moves its deadlines into the past, since only the clock of Redis counts. */
export async function endOverdue(store: StoreConnection, id: string): Promise<void> {
  const model = modelOfRequestId(id)!;
  const keys = store.keysOf(model);
  await store.redis.hset(keys.request(id), 'startDeadlineMs', 1, 'deadlineMs', 1);
  await store.redis.zadd(keys.deadlines, 1, id);
  await expireRequests(store, model);
}
