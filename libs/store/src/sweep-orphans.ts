/** What the queue's indexes still hold of requests that are no more: it would count against limits for ever. */
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** Removes them from the queue and, of `openKeys`, from their owners' open requests. Returns their ids. */
export async function sweepOrphans(
  store: StoreConnection,
  model: string,
  openKeys: readonly string[],
): Promise<string[]> {
  const { base, queued } = store.keysOf(model);
  const orphans = new Set<string>();
  for (const id of await withoutRequest(store, model, await store.redis.zrange(queued, '0', '-1')))
    if ((await runScript(store.redis, 'drop-orphan', base, id)) === 1) orphans.add(id);
  for (const key of openKeys)
    for (const id of await withoutRequest(store, model, await store.redis.smembers(key)))
      // An id never comes back, so nobody can have added it again.
      if ((await store.redis.srem(key, id)) === 1) orphans.add(id);
  return [...orphans];
}

async function withoutRequest(store: StoreConnection, model: string, ids: readonly string[]): Promise<string[]> {
  const keys = store.keysOf(model);
  const found = await Promise.all(ids.map((id) => store.redis.exists(keys.request(id))));
  return ids.filter((_id, position) => found[position] === 0);
}
