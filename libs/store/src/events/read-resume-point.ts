import type { RequestEnvelope } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';

/** What earlier deliveries of a request have left: indexes of finished outputs, and the last checkpoint of others, by index. One round trip. */
export async function readResumePoint(store: StoreConnection, { model, id, outputs }: RequestEnvelope) {
  const keys = store.keysOf(model);
  const indexes = Array.from({ length: outputs }, (_value, index) => index);
  const [infos, bytes] = await Promise.all([
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `output:${index}`)),
    store.redis.mgetBuffer(indexes.map((index) => keys.checkpoint(id, index))),
  ]);
  const checkpoints = new Map<number, Buffer>();
  for (const [index, value] of bytes.entries()) if (value !== null) checkpoints.set(index, value);
  return { finished: new Set(indexes.filter((index) => infos[index] !== null)), checkpoints };
}
