/**
 * A paused model takes requests in and starts none: BullMQ gives out nothing of a paused queue, and lease-batch.lua
 * leases nothing that was taken before. What runs goes on, and deadlines do too.
 */
import type { StoreConnection } from './store-connection.ts';

/** Safe to call twice. */
export async function pauseModel(store: StoreConnection, model: string): Promise<void> {
  await store.queueOf(model).pause();
}

/** Wakes the formers. Safe to call twice. */
export async function resumeModel(store: StoreConnection, model: string): Promise<void> {
  await store.queueOf(model).resume();
  await store.redis.publish(store.keysOf(model).wakeup, 'resumed');
}
