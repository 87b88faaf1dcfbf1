/** Restart lock: workers of a model restart one after the other, so that the others serve meanwhile. */
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A worker of the model, in whichever shard. */
export interface RestartLockHolder {
  readonly model: string;
  readonly workerId: string;
}

/** Takes or renews the lock for `ttlMs`. Returns false while another worker holds it. One round trip. */
export async function acquireRestartLock(
  store: StoreConnection,
  { model, workerId }: RestartLockHolder,
  ttlMs: number,
): Promise<boolean> {
  return (await runScript(store, 'models/restart-lock', store.keysOf(model), [workerId, ttlMs])) === 1;
}

/** Releases the lock. */
export async function releaseRestartLock(
  store: StoreConnection,
  { model, workerId }: RestartLockHolder,
): Promise<void> {
  await runScript(store, 'models/restart-lock', store.keysOf(model), [workerId, 0]);
}
