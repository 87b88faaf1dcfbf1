import { itemAt } from '@darkroom/core';
import type { OutputInfo } from '@darkroom/core';
import { fetchReferred, referenceOf } from '../bytes/store-bytes.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/**
 * Reads a finished output with its bytes; undefined if it does not exist (any more). One round trip, and one more to
 * the byte store.
 */
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
  // Texts are always in Redis: a text that looks like a reference is none.
  const reference = isText(info) ? undefined : referenceOf(store, id, itemAt(chunks, 0));
  if (reference === undefined) return { info, data: chunks.length === 1 ? itemAt(chunks, 0) : Buffer.concat(chunks) };
  // All chunks are ranges of the same stored bytes.
  const data = await fetchReferred(store, { ...reference, to: reference.from + info.bytes });
  return data && { info, data };
}

function isText({ contentType }: OutputInfo): boolean {
  return contentType.startsWith('text/');
}

/**
 * Returns a presigned URL of a finished output, usable by any client that has it. Undefined if clients cannot reach the
 * byte store, or there is no such output. One round trip, none if clients cannot reach the store.
 */
export async function linkOutput(
  store: StoreConnection,
  id: string,
  { index, seconds }: { index: number; seconds: number },
): Promise<string | undefined> {
  const key = store.keysOfRequest(id)?.output(id, index);
  if (store.bytes?.link === undefined || key === undefined) return undefined;
  const [info, first] = await store.redis.hmgetBuffer(key, 'info', '0');
  if (!info || !first) return undefined;
  const output = JSON.parse(info.toString()) as OutputInfo;
  const reference = isText(output) ? undefined : referenceOf(store, id, first);
  return reference && store.bytes.link(reference.name, { contentType: output.contentType, seconds });
}
