import type { RequestEnvelope } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { readTexts } from './read-texts.ts';

/** What earlier deliveries of a request have left. */
export interface ResumePoint {
  /** Indexes of finished outputs. */
  finished: ReadonlySet<number>;
  /** The last checkpoint of each output that has one, by index. */
  checkpoints: ReadonlyMap<number, Buffer>;
  /** What stands of the text of each output that has any, by index. */
  texts: ReadonlyMap<number, string>;
}

/** One round trip, and one more where there is text. */
export async function readResumePoint(
  store: StoreConnection,
  { model, id, outputs }: RequestEnvelope,
): Promise<ResumePoint> {
  const keys = store.keysOf(model);
  const indexes = Array.from({ length: outputs }, (_value, index) => index);
  const [infos, spans, bytes] = await Promise.all([
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `output:${index}`)),
    store.redis.hmget(keys.request(id), ...indexes.map((index) => `span:${index}`)),
    store.redis.mgetBuffer(indexes.map((index) => keys.checkpoint(id, index))),
  ]);
  const checkpoints = new Map<number, Buffer>();
  for (const [index, value] of bytes.entries()) if (value !== null) checkpoints.set(index, value);
  const written = indexes.filter((index) => spans[index] !== null);
  const texts = written.length === 0 ? [] : await readTexts(store, id, outputs);
  return {
    finished: new Set(indexes.filter((index) => infos[index] !== null)),
    checkpoints,
    texts: new Map(written.map((index) => [index, texts[index]!])),
  };
}
