import { isTerminalState, type RequestEvent } from '@darkroom/core';
import { fetchBytes } from '../bytes/keep-bytes.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/**
 * Events after a sequence number (0 for all), oldest first, at most `limit`, so that a slow reader takes them in pieces; empty when
 * there are none (yet) or the request is gone. One round trip.
 *
 * @param options.followMs for so long its progress is read as it comes, so its worker writes each; by itself it does so once a second.
 */
export async function readEvents(
  store: StoreConnection,
  id: string,
  { after, limit = 256, followMs = 0 }: { after: number; limit?: number; followMs?: number },
): Promise<RequestEvent[]> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return [];
  const reply = await runScript(store, 'events/read-events', keys, [id, after, limit, followMs], { asBytes: true });
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

/** An event as emit-event.lua writes it. `bytes`: those of a preview or a chunk, or where they are; none, or no more, when empty. */
export function decodeEvent(sequence: number, body: string, bytes: Uint8Array = new Uint8Array()): RequestEvent {
  const event = { ...(JSON.parse(body) as Omit<RequestEvent, 'sequence'>), sequence } as RequestEvent;
  const hasBytes = event.type === 'preview' || event.type === 'output';
  return hasBytes && bytes.length > 0 ? { ...event, data: bytes } : event;
}
