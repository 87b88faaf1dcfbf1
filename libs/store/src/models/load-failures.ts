import { systemKeys } from '../connection/keys.ts';
import { readTime } from '../connection/read-time.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A model that could not be loaded. It may not be registered, so failures are not among the keys of models. */
export interface LoadFailure {
  model: string;
  /** Host that tried to load it. */
  host: string;
  /** Safe to show: contains names of model files, but no paths. */
  reason: string;
  failedAtMs: number;
}

/** Identifies a load attempt: the next failure of a model on the same host replaces the last. */
export type LoadAttempt = Pick<LoadFailure, 'model' | 'host'>;

/** Records that a model could not be loaded on a host; shown for `shownMs` unless it is reported again. */
export async function reportLoadFailure(
  store: StoreConnection,
  attempt: LoadAttempt,
  { reason, shownMs }: { reason: string; shownMs: number },
): Promise<void> {
  const key = systemKeys(store.prefix).loadFailures;
  const [failedAtMs, known] = await Promise.all([readTime(store), store.redis.hgetall(key)]);
  const expired = Object.keys(known).filter((field) => decode(known[field]!).untilMs <= failedAtMs);
  const failure = { ...attempt, reason, failedAtMs, untilMs: failedAtMs + shownMs };
  const writing = store.redis
    .multi()
    .hdel(key, '', ...expired)
    .hset(key, fieldOf(attempt), JSON.stringify(failure));
  // The key lives as long as the failure that is shown longest.
  await writing.pexpire(key, shownMs, 'NX').pexpire(key, shownMs, 'GT').exec();
}

/** Removes the failure of a model that was loaded on this host. */
export async function clearLoadFailure(store: StoreConnection, attempt: LoadAttempt): Promise<void> {
  await store.redis.hdel(systemKeys(store.prefix).loadFailures, fieldOf(attempt));
}

/** Returns the current failures, by model and host. One round trip. */
export async function readLoadFailures(store: StoreConnection): Promise<LoadFailure[]> {
  const [nowMs, replies] = await Promise.all([
    readTime(store),
    store.redis.hvals(systemKeys(store.prefix).loadFailures),
  ]);
  return replies
    .map(decode)
    .filter(({ untilMs }) => untilMs > nowMs)
    .map(({ model, host, reason, failedAtMs }) => ({ model, host, reason, failedAtMs }))
    .toSorted((left, right) => (fieldOf(left) < fieldOf(right) ? -1 : 1));
}

function decode(json: string): LoadFailure & { untilMs: number } {
  return JSON.parse(json) as LoadFailure & { untilMs: number };
}

/** Returns the hash field. Model ids contain no spaces. */
function fieldOf({ model, host }: LoadAttempt): string {
  return `${model} ${host}`;
}
