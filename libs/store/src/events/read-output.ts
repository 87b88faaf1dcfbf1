import type { OutputInfo } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A finished output with its bytes, or undefined when there is none (yet, or any more). One round trip. */
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
  return { info, data: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) };
}

/** One chunk of an output, which can be read before the last one is written. */
export async function readOutputChunk(
  store: StoreConnection,
  id: string,
  index: number,
  chunkIndex: number,
): Promise<Buffer | undefined> {
  const key = store.keysOfRequest(id)?.output(id, index);
  return key === undefined ? undefined : ((await store.redis.hgetBuffer(key, String(chunkIndex))) ?? undefined);
}
