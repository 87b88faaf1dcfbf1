import type { OutputInfo } from '@darkroom/core';
import { decodeReference } from '../bytes/byte-store.ts';
import { fetchBytes, partOf } from '../bytes/keep-bytes.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A finished output with its bytes, or undefined when there is none (yet, or any more). One round trip, and one to where its bytes are kept. */
export async function readOutput(
  store: StoreConnection,
  id: string,
  index: number,
): Promise<{ info: OutputInfo; data: Buffer } | undefined> {
  const keys = store.keysOfRequest(id);
  const fields = keys && (await store.redis.hgetallBuffer(keys.output(id, index)));
  if (fields?.['info'] === undefined) return undefined;
  const info = JSON.parse(fields['info'].toString()) as OutputInfo;
  const chunks = Array.from({ length: info.chunks }, (_value, chunk) => fields[chunk]).filter(
    (chunk) => chunk !== undefined,
  );
  if (chunks.length < info.chunks) return undefined;
  const data = await joined(store, chunks, info.bytes);
  return data && { info, data };
}

/** All chunks are parts of one thing where they are kept elsewhere. */
async function joined(store: StoreConnection, chunks: readonly Buffer[], bytes: number): Promise<Buffer | undefined> {
  const [first] = chunks;
  if (first !== undefined && decodeReference(first) !== undefined) return fetchBytes(store, partOf(first, 0, bytes));
  return chunks.length === 1 ? first : Buffer.concat(chunks);
}

/** One chunk of an output, which can be read before the last one is written. */
export async function readOutputChunk(
  store: StoreConnection,
  id: string,
  index: number,
  chunkIndex: number,
): Promise<Buffer | undefined> {
  const key = store.keysOfRequest(id)?.output(id, index);
  const held = key === undefined ? null : await store.redis.hgetBuffer(key, String(chunkIndex));
  return held === null ? undefined : fetchBytes(store, held);
}

/**
 * A URL that gives a finished output to whoever holds it, without us; undefined where clients do not reach what keeps it, and
 * where there is no such output. One round trip.
 */
export async function linkOutput(
  store: StoreConnection,
  id: string,
  { index, seconds }: { index: number; seconds: number },
): Promise<string | undefined> {
  const key = store.keysOfRequest(id)?.output(id, index);
  if (store.bytes === undefined || key === undefined) return undefined;
  const [info, first] = await store.redis.hmgetBuffer(key, 'info', '0');
  const reference = first ? decodeReference(first) : undefined;
  if (!info || reference === undefined) return undefined;
  const { contentType } = JSON.parse(info.toString()) as OutputInfo;
  return store.bytes.link(reference.name, { contentType, seconds });
}
