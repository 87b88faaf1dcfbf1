import { modelOfRequestId, type OutputInfo } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A finished output with its bytes, or undefined when there is none (yet, or any more). One round trip. */
export async function readOutput(
  store: StoreConnection,
  id: string,
  index: number,
): Promise<{ info: OutputInfo; data: Buffer } | undefined> {
  const model = modelOfRequestId(id);
  if (model === undefined) return undefined;
  const fields = await store.redis.hgetallBuffer(store.keysOf(model).output(id, index));
  const info = fields['info'];
  if (info === undefined) return undefined;
  const facts = JSON.parse(info.toString()) as OutputInfo;
  const chunks: Buffer[] = [];
  for (let chunk = 0; chunk < facts.chunks; chunk++) {
    const bytes = fields[chunk];
    if (bytes === undefined) return undefined;
    chunks.push(bytes);
  }
  return { info: facts, data: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) };
}

/** One chunk of an output, which can be read before the last one is written. */
export async function readOutputChunk(
  store: StoreConnection,
  id: string,
  index: number,
  chunkIndex: number,
): Promise<Buffer | undefined> {
  const model = modelOfRequestId(id);
  if (model === undefined) return undefined;
  return (await store.redis.hgetBuffer(store.keysOf(model).output(id, index), String(chunkIndex))) ?? undefined;
}
