/** What came with a request, such as a picture to begin with. It is stored by the request's admission, and goes when its prompt goes. */
import { randomUUID } from 'node:crypto';
import type { StoreConnection } from '../connection/store-connection.ts';
import { encodeReference } from './byte-store.ts';
import { bytesFolderOf, fetchBytes } from './keep-bytes.ts';

/** By name, as the envelope lists them. */
export type Attachments = ReadonlyMap<string, Uint8Array>;

/** Runs what is done where bytes are kept, for callers that wait for that as they see fit. */
export type AskBytes = <Result>(call: () => Promise<Result>) => Promise<Result>;

export const askBytesPlainly: AskBytes = (call) => call();

export interface KeptAttachments {
  /** For the admission: how many bytes they are, then each with its name, as Redis is to hold it. */
  values: readonly (string | number | Uint8Array)[];
  /** For a request that was not stored after all. */
  remove(): Promise<void>;
}

async function nothing(): Promise<void> {}

/**
 * Puts what came with a request where this system keeps bytes, before the request itself is stored. No round trip where they are kept in Redis.
 *
 * @throws DarkroomError `unavailable` when the store cannot take them now.
 */
export async function keepAttachments(
  store: StoreConnection,
  id: string,
  attachments: Attachments = new Map(),
): Promise<KeptAttachments> {
  const { bytes } = store;
  const entries = [...attachments];
  if (entries.length === 0) return { values: [], remove: nothing };
  const total = entries.reduce((sum, [, data]) => sum + data.byteLength, 0);
  if (bytes === undefined) return { values: [total, ...entries.flat()], remove: nothing };
  // The same id may be sent by two at once, one of which is refused and removes its own.
  const folder = `${bytesFolderOf(store, id)}inputs/${randomUUID()}`;
  const names = entries.map(([name]) => `${folder}.${name}`);
  await Promise.all(entries.map(([, data], index) => bytes.put(names[index]!, data)));
  const held = entries.flatMap(([name, data], index) => [
    name,
    encodeReference({ name: names[index]!, from: 0, to: data.byteLength }),
  ]);
  return { values: [total, ...held], remove: () => bytes.remove(names) };
}

/**
 * All that came with a request, as far as it is still there. One round trip, and one more to where bytes are kept.
 *
 * @throws DarkroomError `unavailable` when the store cannot give them now.
 */
export async function readAttachments(store: StoreConnection, id: string): Promise<Map<string, Buffer>> {
  const keys = store.keysOfRequest(id);
  const held = keys === undefined ? {} : await store.redis.hgetallBuffer(keys.inputs(id));
  const fetched = await Promise.all(
    Object.entries(held).map(async ([name, value]) => [name, await fetchBytes(store, id, value)] as const),
  );
  return new Map(fetched.flatMap(([name, data]) => (data === undefined ? [] : [[name, data] as const])));
}

/** One of them; undefined when it is not there (any more). Round trips and errors as of `readAttachments`. */
export async function readAttachment(store: StoreConnection, id: string, name: string): Promise<Buffer | undefined> {
  const keys = store.keysOfRequest(id);
  const held = keys === undefined ? null : await store.redis.hgetBuffer(keys.inputs(id), name);
  return held === null ? undefined : fetchBytes(store, id, held);
}
