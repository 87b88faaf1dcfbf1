import { loadFailuresKey } from './keys.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

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
  const facts = JSON.stringify({ ...place, reason });
  await runScript(store.redis, 'report-load-failure', loadFailuresKey(store.prefix), fieldOf(place), facts, shownMs);
}

/** It could be loaded there. */
export async function clearLoadFailure(store: StoreConnection, place: LoadPlace): Promise<void> {
  await store.redis.hdel(loadFailuresKey(store.prefix), fieldOf(place));
}

/** The latest failures, by model and host. One round trip. */
export async function readLoadFailures(store: StoreConnection): Promise<LoadFailure[]> {
  const replies = (await runScript(store.redis, 'read-load-failures', loadFailuresKey(store.prefix))) as [
    atMs: string,
    facts: string,
  ][];
  return replies
    .map(([atMs, facts]) => ({ ...(JSON.parse(facts) as LoadPlace & { reason: string }), failedAtMs: Number(atMs) }))
    .toSorted((left, right) => (fieldOf(left) < fieldOf(right) ? -1 : 1));
}

/** A model's id has no space. */
function fieldOf({ model, host }: LoadPlace): string {
  return `${model} ${host}`;
}
