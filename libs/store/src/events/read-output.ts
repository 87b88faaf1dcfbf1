import type { OutputInfo, RequestEvent } from '@darkroom/core';
import { fetchBytes, fetchReferred, referenceOf } from '../bytes/keep-bytes.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

type OutputEvent = Extract<RequestEvent, { type: 'output' }>;

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
  // A text is never elsewhere, whatever it begins with.
  const reference = isText(info) ? undefined : referenceOf(store, id, chunks[0]!);
  if (reference === undefined) return { info, data: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) };
  // All chunks are parts of one thing.
  const data = await fetchReferred(store, { ...reference, to: reference.from + info.bytes });
  return data && { info, data };
}

function isText({ contentType }: OutputInfo): boolean {
  return contentType.startsWith('text/');
}

/** The chunk of an output that an event tells of, which can be read before the last one is written. No round trip to Redis where the event brings it. */
export async function readOutputChunk(
  store: StoreConnection,
  id: string,
  { output, chunkIndex, data }: Pick<OutputEvent, 'output' | 'chunkIndex' | 'data'>,
): Promise<Buffer | undefined> {
  const key = store.keysOfRequest(id)?.output(id, output.index);
  if (key === undefined) return undefined;
  const held = data ?? (await store.redis.hgetBuffer(key, String(chunkIndex)));
  return held === null ? undefined : fetchBytes(store, id, held);
}

/**
 * A URL that gives a finished output to whoever holds it, without us; undefined where clients do not reach what keeps it, and
 * where there is no such output. One round trip where they do.
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
  const facts = JSON.parse(info.toString()) as OutputInfo;
  const reference = isText(facts) ? undefined : referenceOf(store, id, first);
  return reference && store.bytes.link(reference.name, { contentType: facts.contentType, seconds });
}
