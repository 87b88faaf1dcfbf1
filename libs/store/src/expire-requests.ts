import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** The most requests one sweep looks at, so that a sweep stays short. */
const sweepLimit = 1000;

/** Ends the requests of a model whose deadline is over. Safe to run in many janitors at once. Returns the ended ids. */
export async function expireRequests(store: StoreConnection, model: string, nowMs: number): Promise<string[]> {
  const keys = store.keysOf(model);
  const due = await store.redis.zrangebyscore(keys.deadlines, 0, nowMs, 'LIMIT', 0, sweepLimit);
  const outcomes = await Promise.all(due.map((id) => runScript(store.redis, 'expire-request', keys.base, id, nowMs)));
  const expired = due.filter((_id, index) => outcomes[index] === 'expired');
  await Promise.all(expired.map((id) => store.queueOf(model).remove(id)));
  return expired;
}
