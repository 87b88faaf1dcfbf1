/** What BullMQ counts and keeps of a model's finished jobs. */
import type { StoreConnection } from './store-connection.ts';

const minuteMs = 60_000;

/** Jobs that a worker or former ended in the last `minutes`, the one under way included, by BullMQ's own counts. */
export async function countFinished(
  store: StoreConnection,
  model: string,
  { kind, minutes, nowMs }: { kind: 'completed' | 'failed'; minutes: number; nowMs: number },
): Promise<number> {
  const { meta, data } = await store.queueOf(model).getMetrics(kind, 0, minutes);
  // The newest minute is not in the list until a job of a later one comes.
  const perMinute = [meta.count - meta.prevCount, ...data];
  const newestIsAgo = Math.floor(nowMs / minuteMs) - Math.floor(meta.prevTS / minuteMs);
  return perMinute.slice(0, Math.max(0, minutes - newestIsAgo)).reduce((sum, count) => sum + count, 0);
}

/** A request whose job is in BullMQ's failed set. */
export interface FailedRequest {
  model: string;
  failedAtMs: number;
  /** In words that are safe to show. */
  reason: string;
}

/** The last ones, newest first. */
export async function listFailed(store: StoreConnection, model: string, limit: number): Promise<FailedRequest[]> {
  const jobs = await store.queueOf(model).getFailed(0, limit - 1);
  // One may be removed between the list and the look at it.
  return jobs
    .filter((job) => job?.finishedOn !== undefined)
    .map(({ finishedOn = 0, failedReason }) => ({ model, failedAtMs: finishedOn, reason: failedReason }));
}
