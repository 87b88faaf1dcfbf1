/** What a worker writes while a request runs. Every write is fenced by the delivery's token and does nothing once that is lost. */
import type { OutputInfo } from '@darkroom/core';
import type { Delivery } from './lease-batch.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** `canceling`: written, and the request is to be dropped. `lost`, `ended`: not written. */
export type WriteOutcome = 'written' | 'canceling' | 'lost' | 'ended';

export interface RowProgress {
  /** Which of the request's outputs. */
  index: number;
  /** How much of this output is done, and of how much. */
  done: number;
  total?: number | undefined;
  /** The same over all outputs of the request; a total of 0 while nobody knows it. */
  requestDone: number;
  requestTotal: number;
  /** A small encoded picture. */
  preview?: { data: Uint8Array; contentType: string };
  timestampMs: number;
}

export async function appendProgress(
  store: StoreConnection,
  model: string,
  { id, token }: Delivery,
  { index, done, total, requestDone, requestTotal, preview, timestampMs }: RowProgress,
): Promise<WriteOutcome> {
  const event = { type: 'progress', timestampMs, index, done, total, contentType: preview?.contentType };
  const reply = await runScript(
    store.redis,
    'append-progress',
    store.keysOf(model).base,
    id,
    token,
    JSON.stringify(event),
    preview?.data ?? '',
    requestDone,
    requestTotal,
  );
  return reply as WriteOutcome;
}

export interface WriteOutputOptions {
  index: number;
  contentType: string;
  data: Uint8Array;
  /** What the pipeline says about it, such as seed and size. */
  facts: Readonly<Record<string, number | string>>;
  /** Bytes of one chunk; rounded down to a multiple of 3, so that base64 of the chunks can be joined. */
  chunkBytes: number;
  timestampMs: number;
}

/** Stores a finished output in chunks, one event each. The chunks go out together; Redis keeps their order. */
export async function writeOutput(
  store: StoreConnection,
  model: string,
  { id, token }: Delivery,
  { index, contentType, data, facts, chunkBytes, timestampMs }: WriteOutputOptions,
): Promise<WriteOutcome> {
  const size = Math.max(3, chunkBytes - (chunkBytes % 3));
  const chunks = Math.max(1, Math.ceil(data.byteLength / size));
  const info: OutputInfo = { ...facts, index, contentType, bytes: data.byteLength, chunks };
  const infoJson = JSON.stringify(info);
  const { base } = store.keysOf(model);
  const outcomes = await Promise.all(
    Array.from({ length: chunks }, (_value, chunkIndex) => {
      const bytes = data.subarray(chunkIndex * size, (chunkIndex + 1) * size);
      const event = JSON.stringify({ type: 'output', timestampMs, output: info, chunkIndex });
      return runScript(store.redis, 'write-output', base, id, token, index, chunkIndex, bytes, event, infoJson, chunks);
    }),
  );
  return (outcomes as WriteOutcome[]).find((outcome) => outcome !== 'written') ?? 'written';
}

/** Stores where a row is, so that another worker can go on from there. */
export async function writeCheckpoint(
  store: StoreConnection,
  model: string,
  { id, token }: Delivery,
  index: number,
  bytes: Uint8Array,
): Promise<WriteOutcome> {
  const { base } = store.keysOf(model);
  return (await runScript(store.redis, 'write-checkpoint', base, id, token, index, bytes)) as WriteOutcome;
}

/** The rows' last checkpoints by output index. Rows without one are absent. One round trip. */
export async function readCheckpoints(
  store: StoreConnection,
  model: string,
  id: string,
  outputs: number,
): Promise<Map<number, Buffer>> {
  const keys = store.keysOf(model);
  const values = await store.redis.mgetBuffer(
    Array.from({ length: outputs }, (_value, index) => keys.checkpoint(id, index)),
  );
  const checkpoints = new Map<number, Buffer>();
  for (const [index, value] of values.entries()) if (value !== null) checkpoints.set(index, value);
  return checkpoints;
}

/** Output indexes that an earlier delivery has finished already. One round trip. */
export async function readFinishedOutputs(store: StoreConnection, model: string, id: string): Promise<Set<number>> {
  const names = await store.redis.hkeys(store.keysOf(model).request(id));
  return new Set(
    names.filter((name) => name.startsWith('output:')).map((name) => Number(name.slice('output:'.length))),
  );
}

/** Promises rows of a lease to others before the request has ended; `all` ends the lease. */
export async function releaseRows(
  store: StoreConnection,
  model: string,
  workerId: string,
  { id, token }: Delivery,
  rows: number | 'all',
  nowMs: number = Date.now(),
): Promise<void> {
  await runScript(store.redis, 'release-rows', store.keysOf(model).base, workerId, id, token, rows, nowMs);
}
