import { isTerminalState, type RequestEvent } from '@darkroom/core';
import { fetchBytes } from '../bytes/keep-bytes.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/**
 * Events after a sequence number (0 for all), oldest first, at most `limit`, so that a slow reader takes them in pieces; empty when
 * there are none (yet) or the request is gone. One round trip.
 */
export async function readEvents(
  store: StoreConnection,
  id: string,
  { after, limit = 256 }: { after: number; limit?: number },
): Promise<RequestEvent[]> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return [];
  const reply = await runScript(store, 'events/read-events', keys, [id, after, limit], { asBytes: true });
  return (reply as [sequence: Buffer, body: Buffer, preview: Buffer][]).map(([sequence, body, preview]) =>
    decodeEvent(Number(sequence.toString('latin1')), body.toString('utf8'), preview),
  );
}

/** How far a request's log is, and whether it will not get further: it has ended, or is gone. One round trip, the cheapest there is. */
export async function readLogEnd(store: StoreConnection, id: string): Promise<{ last: number; isEnded: boolean }> {
  const keys = store.keysOfRequest(id);
  const [state, sequence] = keys === undefined ? [] : await store.redis.hmget(keys.request(id), 'state', 'sequence');
  const isEnded = !state || isTerminalState(state);
  return { last: Number(sequence ?? 0), isEnded };
}

/** The bytes of a preview, wherever they are kept; undefined when they are gone. */
export async function readPreview(
  store: StoreConnection,
  id: string,
  { data }: { data?: Uint8Array },
): Promise<Uint8Array | undefined> {
  return data && fetchBytes(store, id, data);
}

/** An event as emit-event.lua writes it. `preview`: its bytes or where they are (`readPreview`); none, or no more, when empty. */
export function decodeEvent(sequence: number, body: string, preview: Uint8Array = new Uint8Array()): RequestEvent {
  const event = { ...(JSON.parse(body) as Omit<RequestEvent, 'sequence'>), sequence } as RequestEvent;
  return event.type === 'preview' && preview.length > 0 ? { ...event, data: preview } : event;
}
