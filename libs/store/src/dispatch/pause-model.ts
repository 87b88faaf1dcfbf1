/** A paused model takes requests in and starts none. What runs goes on, and deadlines do too. */
import type { StoreConnection } from '../connection/store-connection.ts';

/** Safe to call twice. */
export async function pauseModel(store: StoreConnection, model: string): Promise<void> {
  await store.redis.set(store.keysOf(model).paused, '1');
}

/** Wakes the formers. Safe to call twice. */
export async function resumeModel(store: StoreConnection, model: string): Promise<void> {
  const { paused, wakeup } = store.keysOf(model);
  await store.redis.del(paused);
  await store.redis.publish(wakeup, 'resumed');
}
