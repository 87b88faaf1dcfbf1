import type { RequestError } from '@darkroom/core';
import type { StoreConnection } from './store-connection.ts';

/** A failed request that nobody has retried or dropped. */
export interface DeadRequest {
  id: string;
  model: string;
  failedAtMs: number;
  /** In words that are safe to show. */
  reason: string;
  /** Undefined, like the rest, when its time is over and only its job is left. */
  owner: string | undefined;
  code: string | undefined;
  /** Deliveries to a worker. */
  attempts: number | undefined;
  /** Whether what it asked for is still stored. */
  isRetryable: boolean;
}

/** The last ones of a model, newest first. */
export async function listDead(store: StoreConnection, model: string, limit: number): Promise<DeadRequest[]> {
  const keys = store.keysOf(model);
  const jobs = await store.queueOf(model).getFailed(0, limit - 1);
  const dead = await Promise.all(
    jobs.map(async (job): Promise<DeadRequest | undefined> => {
      // One may be removed between the list and the look at it.
      const { id, finishedOn, failedReason } = job ?? {};
      if (id === undefined || finishedOn === undefined) return undefined;
      const fields = ['owner', 'attempts', 'error', 'stripped', 'retriedAs'] as const;
      const [owner, attempts, error, stripped, retriedAs] = await store.redis.hmget(keys.request(id), ...fields);
      if (typeof retriedAs === 'string') return undefined;
      return {
        id,
        model,
        failedAtMs: finishedOn,
        reason: failedReason ?? '',
        owner: owner ?? undefined,
        code: typeof error === 'string' ? (JSON.parse(error) as RequestError).code : undefined,
        attempts: typeof attempts === 'string' ? Number(attempts) : undefined,
        isRetryable: typeof owner === 'string' && typeof stripped !== 'string',
      };
    }),
  );
  return dead.filter((request) => request !== undefined);
}
