import type { RequestEnvelope } from '@darkroom/core';
import type { StoreConnection } from './store-connection.ts';

/** The `traceparent` of a request; undefined when nobody traces it, or when it is gone. */
export async function readTrace(store: StoreConnection, model: string, id: string): Promise<string | undefined> {
  const envelope = await store.redis.hget(store.keysOf(model).request(id), 'envelope');
  return envelope === null ? undefined : (JSON.parse(envelope) as RequestEnvelope).trace;
}
