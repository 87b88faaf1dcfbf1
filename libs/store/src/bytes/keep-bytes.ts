import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';
import { bytesUnavailable, decodeReference, encodeReference } from './byte-store.ts';

/** Folders of a request's bytes. Those of `work` are of no use any more when it has ended. */
export type BytesFolder = 'outputs' | 'work';

/** Each system has names of its own, and each request a folder. */
export function bytesFolderOf(store: Pick<StoreConnection, 'prefix'>, id: string): string {
  return `${store.prefix}/${id}/`;
}

/**
 * Puts bytes where this system keeps them; what Redis is to hold: the bytes themselves, or where they are. A name is a delivery's
 * own, so that nobody reads what another one writes. No round trip where they are kept in Redis.
 *
 * @throws DarkroomError `unavailable` when the store cannot take them now.
 */
export async function keepBytes(
  store: StoreConnection,
  { id, token }: Delivery,
  { folder, name, data }: { folder: BytesFolder; name: string; data: Uint8Array },
): Promise<Uint8Array> {
  if (store.bytes === undefined) return data;
  const whole = `${bytesFolderOf(store, id)}${folder}/${token}.${name}`;
  await store.bytes.put(whole, data);
  return encodeReference({ name: whole, from: 0, to: data.byteLength });
}

/**
 * The bytes that a value of Redis is, or stands for. Undefined: they are gone. No round trip where they are kept in Redis.
 *
 * @throws DarkroomError `unavailable` when the store cannot give them now, or when this process was not told where they are.
 */
export async function fetchBytes(store: StoreConnection, held: Uint8Array): Promise<Buffer | undefined> {
  const reference = decodeReference(held);
  if (reference === undefined) return Buffer.from(held.buffer, held.byteOffset, held.byteLength);
  if (store.bytes === undefined)
    throw bytesUnavailable('get', new Error('BYTES_URL is not set, and something is kept there'));
  return store.bytes.get(reference.name, reference);
}

/** Removes what is kept for a request beside Redis. */
export async function removeBytes({ bytes, prefix }: StoreConnection, id: string): Promise<void> {
  if (bytes === undefined) return;
  for await (const names of bytes.list(bytesFolderOf({ prefix }, id))) await bytes.remove(names);
}

/** A part of what is kept, as Redis is to hold it. */
export function partOf(held: Uint8Array, from: number, to: number): Uint8Array {
  const reference = decodeReference(held);
  if (reference === undefined) return held.subarray(from, to);
  return encodeReference({ ...reference, from: reference.from + from, to: reference.from + to });
}
