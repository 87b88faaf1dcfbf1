import { type LastFailure, modelOfShard, type RequestError } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A failed request that was not retried or dropped. */
export type DeadRequest = Awaited<ReturnType<typeof listDead>>[number];

/** How long failed requests are listed, ms. */
const listedMs = 7 * 86_400_000;

/** Returns the failed requests of a model, newest first. Two round trips. */
export async function listDead(store: StoreConnection, model: string, limit: number) {
  const keys = store.keysOf(model);
  const since = String(Date.now() - listedMs);
  const entries = await store.redis.xrevrange(keys.dead, '+', since, 'COUNT', limit);
  const dead = await Promise.all(
    entries.map(async ([entryId, [, id = '', , error = '{}', , failure]]) => {
      const fields = ['owner', 'attempts', 'stripped', 'retriedAs'] as const;
      const [owner, attempts, stripped, retriedAs] = await store.redis.hmget(keys.request(id), ...fields);
      if (typeof retriedAs === 'string') return undefined;
      const { message, code } = JSON.parse(error) as RequestError;
      const { details: _details, ...shown } = parseFailure(failure) ?? {};
      return {
        id,
        model: modelOfShard(model),
        failedAtMs: Number.parseInt(entryId, 10),
        /** Safe to show to clients. */
        reason: message,
        code,
        /** Why the last attempt failed, in the words of the engine and without details: for operators only. */
        failure: failure ? (shown as Omit<LastFailure, 'details'>) : undefined,
        /** Undefined, like `attempts`, once the request has expired. */
        owner: owner ?? undefined,
        /** Number of deliveries to a worker. */
        attempts: typeof attempts === 'string' ? Number(attempts) : undefined,
        /** True if the envelope, with the prompt, is still stored. */
        isRetryable: typeof owner === 'string' && typeof stripped !== 'string',
      };
    }),
  );
  return dead.filter((request) => request !== undefined);
}

/** Returns why the last attempt of a failed request failed, for operators. One round trip. */
export async function readFailure(store: StoreConnection, id: string): Promise<LastFailure | undefined> {
  const keys = store.keysOfRequest(id);
  return keys && parseFailure(await store.redis.hget(keys.request(id), 'lastFailure'));
}

/**
 * Returns why a listed request failed, also after it has expired; undefined if it is not listed. Reads the list, which
 * is short.
 */
export async function readDead(
  store: StoreConnection,
  id: string,
): Promise<{ error: RequestError; failure: LastFailure | undefined } | undefined> {
  const keys = store.keysOfRequest(id);
  const entries = keys === undefined ? [] : await store.redis.xrevrange(keys.dead, '+', '-');
  const [, [, , , error = '{}', , failure] = []] = entries.find(([, [, listed]]) => listed === id) ?? [];
  return error === '{}' ? undefined : { error: JSON.parse(error) as RequestError, failure: parseFailure(failure) };
}

/** Returns undefined if no reason was recorded: the request failed in its only attempt, or has not failed. */
function parseFailure(text: string | null | undefined): LastFailure | undefined {
  return text === undefined || text === null || text === '' ? undefined : (JSON.parse(text) as LastFailure);
}
