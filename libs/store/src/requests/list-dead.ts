import { modelOfShard, type RequestError } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A failed request that nobody has retried or dropped. */
export type DeadRequest = Awaited<ReturnType<typeof listDead>>[number];

/** How long what has failed is listed, ms. */
const listedMs = 7 * 86_400_000;

/** The last ones of a model, newest first. Two round trips. */
export async function listDead(store: StoreConnection, model: string, limit: number) {
  const keys = store.keysOf(model);
  const since = String(Date.now() - listedMs);
  const entries = await store.redis.xrevrange(keys.dead, '+', since, 'COUNT', limit);
  const dead = await Promise.all(
    entries.map(async ([entryId, [, id = '', , error = '{}']]) => {
      const fields = ['owner', 'attempts', 'stripped', 'retriedAs'] as const;
      const [owner, attempts, stripped, retriedAs] = await store.redis.hmget(keys.request(id), ...fields);
      if (typeof retriedAs === 'string') return undefined;
      const { message, code } = JSON.parse(error) as RequestError;
      return {
        id,
        model: modelOfShard(model),
        failedAtMs: Number.parseInt(entryId, 10),
        /** In words that are safe to show. */
        reason: message,
        code,
        /** Undefined, like the attempts, when its time is over. */
        owner: owner ?? undefined,
        /** Deliveries to a worker. */
        attempts: typeof attempts === 'string' ? Number(attempts) : undefined,
        /** Whether what it asked for is still stored. */
        isRetryable: typeof owner === 'string' && typeof stripped !== 'string',
      };
    }),
  );
  return dead.filter((request) => request !== undefined);
}
