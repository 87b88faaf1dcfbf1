import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';
import { bytesUnavailable } from '../byte-stores/byte-store.ts';

/** Stored in Redis in place of the bytes: their name in the byte store and the range. */
export interface BytesReference {
  name: string;
  from: number;
  to: number;
}

/**
 * Prefix of an encoded reference. No image and no checkpoint begins with it; a text may, so texts are never decoded.
 */
const mark = '\0at ';

/** Matches a name inside the folder of a request. */
const insidePattern = /^(?:inputs|outputs|work)\/[\w-][\w.-]*$/;

export function encodeReference({ name, from, to }: BytesReference): Buffer {
  return Buffer.from(`${mark}${from} ${to} ${name}`, 'latin1');
}

/** Returns true for a value that may be an encoded reference. */
export function isReference(value: Uint8Array): boolean {
  return (
    Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, mark.length)).toString('latin1') === mark
  );
}

/** A value in Redis: the bytes themselves, or a reference to the byte store. */
export type StoredValue = Uint8Array | BytesReference;

/** Folders of a request's bytes. Files in `work` (previews, checkpoints) are removed when it ends. */
export type BytesFolder = 'outputs' | 'work';

/** Returns the folder of a request; the prefix keeps installations that share a byte store apart. */
export function bytesFolderOf(store: Pick<StoreConnection, 'prefix'>, id: string): string {
  return `${store.prefix}/${id}/`;
}

/**
 * Stores bytes and returns the value to write to Redis. File names contain the token of the delivery, so a stale
 * delivery cannot overwrite them. No round trip if bytes go to Redis.
 *
 * @throws DarkroomError `unavailable` when the byte store cannot be written.
 */
export async function storeBytes(
  store: StoreConnection,
  { id, token }: Delivery,
  { folder, name, data }: { folder: BytesFolder; name: string; data: Uint8Array },
): Promise<StoredValue> {
  if (store.bytes === undefined) return data;
  const path = `${bytesFolderOf(store, id)}${folder}/${token}.${name}`;
  await store.bytes.put(path, data);
  return { name: path, from: 0, to: data.byteLength };
}

/** Encodes a stored value, or the range `from`..`to` of it, for Redis. */
export function encodeStoredValue(held: StoredValue, from = 0, to?: number): Uint8Array {
  if (held instanceof Uint8Array) return held.subarray(from, to);
  return encodeReference({ name: held.name, from: held.from + from, to: to === undefined ? held.to : held.from + to });
}

/**
 * Returns the reference that a Redis value of a request holds; undefined if the value is the bytes themselves. Names
 * outside the request's folder are not accepted: bytes made by a client may look like a reference.
 */
export function referenceOf(
  store: Pick<StoreConnection, 'prefix'>,
  id: string,
  { buffer, byteOffset, byteLength }: Uint8Array,
): BytesReference | undefined {
  const text = Buffer.from(buffer, byteOffset, Math.min(byteLength, 512)).toString('latin1');
  if (!text.startsWith(mark)) return undefined;
  const folder = bytesFolderOf(store, id);
  const {
    from,
    to,
    name = '',
  } = /^(?<from>\d{1,15}) (?<to>\d{1,15}) (?<name>\S+)$/.exec(text.slice(mark.length))?.groups ?? {};
  if (!name.startsWith(folder) || !insidePattern.test(name.slice(folder.length))) return undefined;
  return { name, from: Number(from), to: Number(to) };
}

/**
 * Returns the bytes for a Redis value of a request; undefined if they were deleted. No round trip if they are in Redis.
 *
 * @throws DarkroomError `unavailable` when the byte store cannot be read, or when this process has no `BYTES_URL`.
 */
export async function fetchBytes(store: StoreConnection, id: string, value: Uint8Array): Promise<Buffer | undefined> {
  const reference = referenceOf(store, id, value);
  if (reference === undefined) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return fetchReferred(store, reference);
}

/** Like `fetchBytes`, for a decoded reference. */
export async function fetchReferred(store: StoreConnection, reference: BytesReference): Promise<Buffer | undefined> {
  if (store.bytes === undefined)
    throw bytesUnavailable('get', new Error('BYTES_URL is not set, but Redis refers to bytes in the byte store'));
  return store.bytes.get(reference.name, reference);
}

/** Removes all bytes of a request outside Redis. */
export async function removeBytes({ bytes, prefix }: StoreConnection, id: string): Promise<void> {
  if (bytes === undefined) return;
  for await (const names of bytes.list(bytesFolderOf({ prefix }, id))) await bytes.remove(names);
}
