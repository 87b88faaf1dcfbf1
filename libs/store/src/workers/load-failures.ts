import { systemKeys } from '../connection/keys.ts';
import { readTime } from '../connection/read-time.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A model that could not be loaded. It may be one that nobody knows yet, so this is not among the keys of models. */
export interface LoadFailure {
  model: string;
  /** The machine it was tried on. */
  host: string;
  /** Safe to show: names files of the model, no paths. */
  reason: string;
  failedAtMs: number;
}

/** Where a model was tried: the next try there replaces what was said of the last. */
export type LoadPlace = Pick<LoadFailure, 'model' | 'host'>;

/** Says that a model could not be loaded somewhere; that is shown for so long unless it is said again. */
export async function reportLoadFailure(
  store: StoreConnection,
  place: LoadPlace,
  { reason, shownMs }: { reason: string; shownMs: number },
): Promise<void> {
  const key = systemKeys(store.prefix).loadFailures;
  const [failedAtMs, known] = await Promise.all([readTime(store), store.redis.hgetall(key)]);
  const over = Object.keys(known).filter((field) => decode(known[field]!).untilMs <= failedAtMs);
  const facts = { ...place, reason, failedAtMs, untilMs: failedAtMs + shownMs };
  const writing = store.redis
    .multi()
    .hdel(key, '', ...over)
    .hset(key, fieldOf(place), JSON.stringify(facts));
  // As long as the one that is shown longest.
  await writing.pexpire(key, shownMs, 'NX').pexpire(key, shownMs, 'GT').exec();
}

/** It could be loaded there. */
export async function clearLoadFailure(store: StoreConnection, place: LoadPlace): Promise<void> {
  await store.redis.hdel(systemKeys(store.prefix).loadFailures, fieldOf(place));
}

/** The latest failures, by model and host. One round trip. */
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

function decode(facts: string): LoadFailure & { untilMs: number } {
  return JSON.parse(facts) as LoadFailure & { untilMs: number };
}

/** A model's id has no space. */
function fieldOf({ model, host }: LoadPlace): string {
  return `${model} ${host}`;
}
