/** What Redis says that it has used of a CPU: of the thread that serves all commands, reading and writing connections included. */
import type { StoreConnection } from '@darkroom/store';

/** µs since it began. */
export async function cpuOf({ redis }: StoreConnection): Promise<number> {
  const info = await redis.info('cpu');
  const parts = [...info.matchAll(/^used_cpu_(?:user|sys)_main_thread:([\d.]+)/gm)];
  return parts.reduce((sum, [, seconds]) => sum + 1e6 * Number(seconds), 0);
}

/** µs that Redis took while `act` ran, when nobody else asks it anything, and without what asking for this takes. */
export async function costOf(store: StoreConnection, act: () => Promise<unknown>): Promise<number> {
  const atStart = await cpuOf(store);
  const before = await cpuOf(store);
  await act();
  const after = await cpuOf(store);
  return Math.max(0, after - before - (before - atStart));
}
