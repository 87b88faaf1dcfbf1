import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';
import { type BytesReference, bytesUnavailable, decodeReference, encodeReference } from './byte-store.ts';

/** What is kept: the bytes themselves where that is in Redis, or where they are. */
export type Held = Uint8Array | BytesReference;

/** Folders of a request's bytes. Those of `work` are of no use any more when it has ended. */
export type BytesFolder = 'outputs' | 'work';

/** Each system has names of its own, and each request a folder. */
export function bytesFolderOf(store: Pick<StoreConnection, 'prefix'>, id: string): string {
  return `${store.prefix}/${id}/`;
}

/**
 * Puts bytes where this system keeps them; what it is to hold then. A name is a delivery's
 * own, so that nobody reads what another one writes. No round trip where they are kept in Redis.
 *
 * @throws DarkroomError `unavailable` when the store cannot take them now.
 */
export async function keepBytes(
  store: StoreConnection,
  { id, token }: Delivery,
  { folder, name, data }: { folder: BytesFolder; name: string; data: Uint8Array },
): Promise<Held> {
  if (store.bytes === undefined) return data;
  const whole = `${bytesFolderOf(store, id)}${folder}/${token}.${name}`;
  await store.bytes.put(whole, data);
  return { name: whole, from: 0, to: data.byteLength };
}

/** A part of what is kept, or all of it, as Redis is to hold it. */
export function encodeHeld(held: Held, from = 0, to?: number): Uint8Array {
  if (held instanceof Uint8Array) return held.subarray(from, to);
  return encodeReference({ name: held.name, from: held.from + from, to: to === undefined ? held.to : held.from + to });
}

/** Where a value of Redis says that its bytes are; undefined where it is the bytes. */
export function referenceOf(
  store: Pick<StoreConnection, 'prefix'>,
  id: string,
  held: Uint8Array,
): BytesReference | undefined {
  return decodeReference(held, bytesFolderOf(store, id));
}

/**
 * The bytes of a request that a value of Redis is, or stands for. Undefined: they are gone. No round trip where they are kept in Redis.
 *
 * @throws DarkroomError `unavailable` when the store cannot give them now, or when this process was not told where they are.
 */
export async function fetchBytes(store: StoreConnection, id: string, held: Uint8Array): Promise<Buffer | undefined> {
  const reference = referenceOf(store, id, held);
  if (reference === undefined) return Buffer.from(held.buffer, held.byteOffset, held.byteLength);
  return fetchReferred(store, reference);
}

/** The same for what is known to stand for bytes. */
export async function fetchReferred(store: StoreConnection, reference: BytesReference): Promise<Buffer | undefined> {
  if (store.bytes === undefined)
    throw bytesUnavailable('get', new Error('BYTES_URL is not set, and something is kept there'));
  return store.bytes.get(reference.name, reference);
}

/** Removes what is kept for a request beside Redis. */
export async function removeBytes({ bytes, prefix }: StoreConnection, id: string): Promise<void> {
  if (bytes === undefined) return;
  for await (const names of bytes.list(bytesFolderOf({ prefix }, id))) await bytes.remove(names);
}
