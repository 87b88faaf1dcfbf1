import { DarkroomError, type RequestEnvelope } from '@darkroom/core';
import { fetchBytes } from '../bytes/store-bytes.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { readTextEvents } from './read-texts.ts';

/**
 * Reads what earlier deliveries of a request left: indexes of finished outputs; the last checkpoint of other outputs,
 * with the fingerprint of the model that made it (`origin`, may be empty); and the text events by output index. One
 * round trip, one more if there is text.
 */
export async function readResumePoint(
  store: StoreConnection,
  { id, outputs }: Pick<RequestEnvelope, 'id' | 'outputs'>,
) {
  // The request is in the shard that its id names.
  const keys = store.keysOfKnownRequest(id);
  const indexes = Array.from({ length: outputs }, (_value, index) => index);
  const [infos, spans, origins, bytes] = await Promise.all([
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `output:${index}`)),
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `span:${index}`)),
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `origin:${index}`)),
    store.redis.mgetBuffer(indexes.map((index) => keys.checkpoint(id, index))),
  ]);
  const checkpoints = new Map<number, { data: Buffer; origin: string }>();
  await Promise.all(
    bytes.map(async (value, index) => {
      // If the byte store is unavailable, start over instead of failing.
      const data = value === null ? undefined : await fetchBytes(store, id, value).catch(undefinedIfUnavailable);
      if (data !== undefined) checkpoints.set(index, { data, origin: origins[index] ?? '' });
    }),
  );
  const written = indexes.filter((index) => spans[index] !== null);
  const all = written.length === 0 ? [] : await readTextEvents(store, id);
  const texts = new Map(written.map((index) => [index, all.filter((event) => event.index === index)]));
  return { finished: new Set(indexes.filter((index) => infos[index] !== null)), checkpoints, texts };
}

function undefinedIfUnavailable(error: unknown): undefined {
  if (!DarkroomError.isInstance(error) || error.code !== 'unavailable') throw error;
}
