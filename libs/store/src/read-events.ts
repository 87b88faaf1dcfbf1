import { modelOfRequestId, type RequestEvent } from '@darkroom/core';
import { decodeEntry } from './event-entry.ts';
import type { StoreConnection } from './store-connection.ts';

export interface ReadEventsOptions {
  /** Sequence number of the last event seen; 0 for all. */
  after: number;
  /** The most events to return, so that a slow reader takes them in pieces. */
  limit?: number;
}

const defaultLimit = 256;

/** Events after a sequence number, oldest first; empty when there are none (yet) or the request is gone. One round trip. */
export async function readEvents(
  store: StoreConnection,
  id: string,
  { after, limit = defaultLimit }: ReadEventsOptions,
): Promise<RequestEvent[]> {
  const model = modelOfRequestId(id);
  if (model === undefined) return [];
  const stream = store.keysOf(model).events(id);
  const entries = await store.redis.xrangeBuffer(stream, `${after + 1}-0`, '+', 'COUNT', limit);
  return entries.map((entry) => decodeEntry(entry));
}
