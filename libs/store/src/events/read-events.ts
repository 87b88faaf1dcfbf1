import { modelOfRequestId, type RequestEvent } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { decodeEvent } from './event-entry.ts';

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
  const { base } = store.keysOf(model);
  const reply = await runScript(store.redis, 'events/read-events', base, [id, after, limit], { asBytes: true });
  return (reply as [sequence: Buffer, body: Buffer, preview: Buffer][]).map(([sequence, body, preview]) =>
    decodeEvent(Number(sequence.toString('latin1')), body.toString('utf8'), preview),
  );
}
