/** Files that clients upload before the requests that use them. Each has an owner and expires like a result. */
import { type CallBytes, callBytesDirectly } from '../bytes/attachments.ts';
import { createFileId } from '../bytes/file-id.ts';
import { bytesFolderOf, encodeReference, fetchBytes } from '../bytes/store-bytes.ts';
import { systemKeys } from '../connection/keys.ts';
import { readTime } from '../connection/read-time.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Metadata of an uploaded file. */
export interface StoredFile {
  id: string;
  contentType: string;
  /** In bytes. */
  size: number;
  /** Digest of the bytes, in hexadecimal. */
  sha256: string;
  createdAtMs: number;
  expiresAtMs: number;
  /** Fields that the client sent. */
  metadata: Readonly<Record<string, unknown>>;
}

export interface FileLimits {
  /** Per owner. */
  maxFiles: number;
  maxBytes: number;
}

export type StoreFileResult = { status: 'stored'; file: StoredFile } | { status: 'full'; files: number; bytes: number };

/** Stores a file, unless its owner has too many. Two round trips, and one to the byte store. */
export async function storeFile(
  store: StoreConnection,
  {
    owner,
    data,
    ...fields
  }: Pick<StoredFile, 'contentType' | 'sha256' | 'metadata'> & { owner: string; data: Uint8Array },
  { maxFiles, maxBytes, callBytes = callBytesDirectly }: FileLimits & { callBytes?: CallBytes },
): Promise<StoreFileResult> {
  const { bytes, resultTtlMs } = store;
  const createdAtMs = await readTime(store);
  const expiresAtMs = createdAtMs + resultTtlMs;
  const id = createFileId(expiresAtMs);
  const size = data.byteLength;
  const name = bytesNameOf(store, id);
  if (bytes !== undefined) await callBytes(() => bytes.put(name, data));
  const value = bytes === undefined ? data : encodeReference({ name, from: 0, to: size });
  const json = JSON.stringify({ ...fields, createdAtMs });
  const values = [owner, id, json, size, resultTtlMs, maxFiles, maxBytes, value];
  const reply = await runScript(store, 'files/store-file', baseOf(store), values);
  const [status, files, total] = reply as ['stored'] | ['full', number, number];
  if (status === 'stored') return { status, file: { ...fields, id, size, createdAtMs, expiresAtMs } };
  if (bytes !== undefined) await callBytes(() => bytes.remove([name])).catch(() => {});
  return { status, files, bytes: total };
}

/** Returns the files of an owner, newest first. One round trip. */
export async function listFiles(store: StoreConnection, owner: string): Promise<StoredFile[]> {
  const [entries, nowMs] = await Promise.all([store.redis.hgetall(filesKey(store, owner)), readTime(store)]);
  return Object.entries(entries)
    .map(([id, text]) => decode(id, text))
    .filter(({ expiresAtMs }) => expiresAtMs > nowMs)
    .toSorted((left, right) => right.createdAtMs - left.createdAtMs);
}

/** Returns a file of this owner; undefined if there is none (any more). One round trip. */
export async function findFile(store: StoreConnection, owner: string, id: string): Promise<StoredFile | undefined> {
  const [text, nowMs] = await Promise.all([store.redis.hget(filesKey(store, owner), id), readTime(store)]);
  const file = text === null ? undefined : decode(id, text);
  return file !== undefined && file.expiresAtMs > nowMs ? file : undefined;
}

/** Reads the bytes of a file that `findFile` returned; the caller has checked the owner. */
export async function readFileBytes(store: StoreConnection, { id, size }: StoredFile): Promise<Buffer | undefined> {
  const value = await store.redis.getBuffer(dataKey(store, id));
  if (value === null) return undefined;
  const data = await fetchBytes(store, id, value);
  return data?.byteLength === size ? data : undefined;
}

/** Deletes a file of this owner. Returns false if there is none. */
export async function deleteFile(store: StoreConnection, owner: string, id: string): Promise<boolean> {
  const removed = await store.redis.hdel(filesKey(store, owner), id);
  if (removed === 0) return false;
  await store.redis.del(dataKey(store, id));
  await store.bytes?.remove([bytesNameOf(store, id)]);
  return true;
}

function decode(id: string, text: string): StoredFile {
  const {
    size = '',
    expires = '',
    json = '{}',
  } = /^(?<size>\d+) (?<expires>\d+) (?<json>.*)$/s.exec(text)?.groups ?? {};
  const fields = JSON.parse(json) as Omit<StoredFile, 'id' | 'size' | 'expiresAtMs'>;
  return { ...fields, id, size: Number(size), expiresAtMs: Number(expires) };
}

/** Returns the name in the byte store. Its folder is the id, from which the janitor reads the expiry time. */
function bytesNameOf(store: StoreConnection, id: string): string {
  return `${bytesFolderOf(store, id)}inputs/content`;
}

function baseOf({ prefix }: StoreConnection): { base: string } {
  return { base: systemKeys(prefix).filesBase };
}

function filesKey(store: StoreConnection, owner: string): string {
  return `${baseOf(store).base}:owner:${owner}`;
}

function dataKey(store: StoreConnection, id: string): string {
  return `${baseOf(store).base}:data:${id}`;
}
