/** Attachments of a request, such as an input image. Admission stores them; they are deleted with the prompt. */
import { randomUUID } from 'node:crypto';
import type { StoreConnection } from '../connection/store-connection.ts';
import { bytesFolderOf, encodeReference, fetchBytes } from './store-bytes.ts';

/** Bytes by attachment name, in the order of the envelope's `attachments`. */
export type Attachments = ReadonlyMap<string, Uint8Array>;

/** Wraps calls to the byte store, for callers that bound how long they wait for it. */
export type CallBytes = <Result>(call: () => Promise<Result>) => Promise<Result>;

export const callBytesDirectly: CallBytes = (call) => call();

export interface StoredAttachments {
  /** Arguments of admit-request.lua: the total size in bytes, then the name and the Redis value of each attachment. */
  values: readonly (string | number | Uint8Array)[];
  /** Removes what was stored, for a request that was not admitted. */
  remove(): Promise<void>;
}

async function nothing(): Promise<void> {}

/**
 * Stores attachments in the byte store before the request itself is stored. No round trip if they go to Redis.
 *
 * @throws DarkroomError `unavailable` when the byte store cannot be written.
 */
export async function storeAttachments(
  store: StoreConnection,
  id: string,
  attachments: Attachments = new Map(),
): Promise<StoredAttachments> {
  const { bytes } = store;
  const entries = [...attachments];
  if (entries.length === 0) return { values: [], remove: nothing };
  const total = entries.reduce((sum, [, data]) => sum + data.byteLength, 0);
  if (bytes === undefined) return { values: [total, ...entries.flat()], remove: nothing };
  // A separate folder per call: two clients may submit the same id, and the refused one removes only its own files.
  const folder = `${bytesFolderOf(store, id)}inputs/${randomUUID()}`;
  const files = entries.map(([name, data]) => ({ name, data, file: `${folder}.${name}` }));
  await Promise.all(files.map(({ file, data }) => bytes.put(file, data)));
  const values = files.flatMap(({ name, data, file }) => {
    return [name, encodeReference({ name: file, from: 0, to: data.byteLength })];
  });
  return { values: [total, ...values], remove: () => bytes.remove(files.map(({ file }) => file)) };
}

/**
 * Returns the attachments of a request that still exist. One round trip, and one more to the byte store.
 *
 * @throws DarkroomError `unavailable` when the byte store cannot be read.
 */
export async function readAttachments(store: StoreConnection, id: string): Promise<Map<string, Buffer>> {
  const keys = store.keysOfRequest(id);
  const values = keys === undefined ? {} : await store.redis.hgetallBuffer(keys.inputs(id));
  const fetched = await Promise.all(
    Object.entries(values).map(async ([name, value]) => [name, await fetchBytes(store, id, value)] as const),
  );
  return new Map(fetched.flatMap(([name, data]) => (data === undefined ? [] : [[name, data] as const])));
}

/**
 * Returns one attachment, undefined if it does not exist (any more). Round trips and errors as in `readAttachments`.
 */
export async function readAttachment(store: StoreConnection, id: string, name: string): Promise<Buffer | undefined> {
  const keys = store.keysOfRequest(id);
  const value = keys === undefined ? null : await store.redis.hgetBuffer(keys.inputs(id), name);
  return value === null ? undefined : fetchBytes(store, id, value);
}
