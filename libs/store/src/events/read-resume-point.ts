import { DarkroomError, type RequestEnvelope } from '@darkroom/core';
import { fetchBytes } from '../bytes/keep-bytes.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { readTextEvents } from './read-texts.ts';

/**
 * What earlier deliveries of a request have left: indexes of finished outputs, the last checkpoint of others and what that was made
 * with (`origin`, empty where nobody said), and what was said of the text of those that have any, by index. One round trip, and one more where there is text.
 */
export async function readResumePoint(
  store: StoreConnection,
  { id, outputs }: Pick<RequestEnvelope, 'id' | 'outputs'>,
) {
  // The id says in which shard of its model it is.
  const keys = store.keysOfRequest(id)!;
  const indexes = Array.from({ length: outputs }, (_value, index) => index);
  const [infos, spans, origins, bytes] = await Promise.all([
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `output:${index}`)),
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `span:${index}`)),
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `origin:${index}`)),
    store.redis.mgetBuffer(indexes.map((index) => keys.checkpoint(id, index))),
  ]);
  const checkpoints = new Map<number, { data: Buffer; origin: string }>();
  await Promise.all(
    bytes.map(async (held, index) => {
      // Who cannot have it now begins anew.
      const data = held === null ? undefined : await fetchBytes(store, id, held).catch(undefinedIfAway);
      if (data !== undefined) checkpoints.set(index, { data, origin: origins[index] ?? '' });
    }),
  );
  const written = indexes.filter((index) => spans[index] !== null);
  const all = written.length === 0 ? [] : await readTextEvents(store, id);
  const said = new Map(written.map((index) => [index, all.filter((event) => event.index === index)]));
  return { finished: new Set(indexes.filter((index) => infos[index] !== null)), checkpoints, said };
}

function undefinedIfAway(error: unknown): undefined {
  if (!DarkroomError.isInstance(error) || error.code !== 'unavailable') throw error;
}
