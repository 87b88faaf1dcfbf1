/** CPU time of Redis's main thread (INFO cpu), which serves all commands and connections. */
import type { StoreConnection } from '@darkroom/store';

/** Returns the CPU µs of Redis since its start. */
export async function cpuOf({ redis }: StoreConnection): Promise<number> {
  const info = await redis.info('cpu');
  const parts = [...info.matchAll(/^used_cpu_(?:user|sys)_main_thread:([\d.]+)/gm)];
  return parts.reduce((sum, [, seconds]) => sum + 1e6 * Number(seconds), 0);
}

/** Returns the CPU µs of Redis while `act` runs, without the cost of INFO. No other client may use Redis meanwhile. */
export async function costOf(store: StoreConnection, act: () => Promise<unknown>): Promise<number> {
  const atStart = await cpuOf(store);
  const before = await cpuOf(store);
  await act();
  const after = await cpuOf(store);
  return Math.max(0, after - before - (before - atStart));
}
