import { isTerminalState, type StoredEvent } from '@darkroom/core';
import { fetchBytes } from '../bytes/store-bytes.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/**
 * Reads the events after a sequence number (0 for all), oldest first, at most `limit`, so that a slow client reads in
 * pages. Empty if there are none (yet) or the request expired. One round trip.
 *
 * @param options.followMs ms for which the client follows the progress: the worker writes each step, instead of one per
 * second.
 */
export async function readEvents(
  store: StoreConnection,
  id: string,
  { after, limit = 256, followMs = 0 }: { after: number; limit?: number; followMs?: number },
): Promise<StoredEvent[]> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return [];
  const reply = await runScript(store, 'events/read-events', keys, [id, after, limit, followMs], { asBytes: true });
  return (reply as [sequence: Buffer, body: Buffer, preview: Buffer][]).map(([sequence, body, preview]) =>
    decodeEvent(Number(sequence.toString('latin1')), body.toString('utf8'), preview),
  );
}

/**
 * Returns the last sequence number of a request's log, and whether the log is complete: the request ended or expired.
 * One cheap round trip.
 */
export async function readLogEnd(store: StoreConnection, id: string): Promise<{ last: number; isEnded: boolean }> {
  const keys = store.keysOfRequest(id);
  const [state, sequence] = keys === undefined ? [] : await store.redis.hmget(keys.request(id), 'state', 'sequence');
  const isEnded = !state || isTerminalState(state);
  return { last: Number(sequence ?? 0), isEnded };
}

/** Returns the bytes of a preview, undefined if they were deleted. */
export async function readPreview(
  store: StoreConnection,
  id: string,
  { data }: { data?: Uint8Array },
): Promise<Uint8Array | undefined> {
  return data && fetchBytes(store, id, data);
}

/**
 * Reads the chunk that an output event announces, readable before the output is complete. No round trip to Redis if the
 * event holds the bytes.
 */
export async function readOutputChunk(
  store: StoreConnection,
  id: string,
  { output, chunkIndex, data }: Pick<Extract<StoredEvent, { type: 'output' }>, 'output' | 'chunkIndex' | 'data'>,
): Promise<Buffer | undefined> {
  const key = store.keysOfRequest(id)?.output(id, output.index);
  if (key === undefined) return undefined;
  const value = data ?? (await store.redis.hgetBuffer(key, String(chunkIndex)));
  return value === null ? undefined : fetchBytes(store, id, value);
}

/**
 * Decodes an event as emit-event.lua writes it. `bytes`: of a preview or chunk, or a reference to them; empty if there
 * are none.
 */
export function decodeEvent(sequence: number, body: string, bytes: Uint8Array = new Uint8Array()): StoredEvent {
  const event = { ...(JSON.parse(body) as Omit<StoredEvent, 'sequence'>), sequence } as StoredEvent;
  const hasBytes = event.type === 'preview' || event.type === 'output';
  return hasBytes && bytes.length > 0 ? { ...event, data: bytes } : event;
}
