import { systemKeys } from '../connection/keys.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { shardsOf } from './model-registry.ts';

/** `in-use`: nothing was changed. Numbers are sums over the shards of the model. */
export type ForgetModelResult =
  | { status: 'forgotten' }
  | { status: 'in-use'; workers: number; openRequests: number; unsentWebhooks: number };

/**
 * Forgets a model without workers and open requests: its card, counters and paused state. Ended requests stay readable
 * until their TTL; new ones are refused until a worker registers for the model. Safe to call twice, and concurrently
 * with submits and registrations. Four round trips.
 *
 * @param unservedMs min time for which sweeps must have found no worker, and the model must not be paused; any model if
 * absent
 */
export async function forgetModel(
  store: StoreConnection,
  model: string,
  { unservedMs }: { unservedMs?: number } = {},
): Promise<ForgetModelResult> {
  const { redis, prefix, resultTtlMs } = store;
  const key = systemKeys(prefix).models;
  const shards = await shardsOf(store, model);
  const run = async (step: 'refuse' | 'delete'): Promise<ForgetReply[]> => {
    // Refuse for the result TTL: no client knows of the model for longer.
    const values = [step, unservedMs ?? '', resultTtlMs];
    const replies = shards.map((shard) => runScript(store, 'models/forget-model', store.keysOf(shard), values));
    return (await Promise.all(replies)) as ForgetReply[];
  };
  const replies = await run('refuse');
  // 'delete' checks again: a worker may have registered since.
  if (replies.every(isDone)) replies.push(...(await run('delete')));
  if (replies.every(isDone)) {
    // A new worker registers before it publishes its card, so this deletes no card that is in use.
    await redis.hdel(key, ...shards);
    return { status: 'forgotten' };
  }
  await Promise.all(shards.map((shard) => redis.del(store.keysOf(shard).forgotten)));
  const used = replies.filter((reply) => !isDone(reply));
  const sum = (at: 1 | 2 | 3): number => used.reduce((total, reply) => total + (reply[at] ?? 0), 0);
  return { status: 'in-use', workers: sum(1), openRequests: sum(2), unsentWebhooks: sum(3) };
}

type ForgetReply = [status: 'done' | 'in-use', workers?: number, open?: number, unsent?: number];

function isDone([status]: ForgetReply): boolean {
  return status === 'done';
}
