/**
 * Writes of a worker while requests run: all pending writes of all its requests go out in one call. Each write is
 * fenced by its delivery's token and does nothing once the request belongs to another delivery.
 */
import type {
  ChangedText,
  Metadata,
  Failure,
  OutputInfo,
  OutputProgress,
  OutputText,
  RequestError,
} from '@darkroom/core';
import { encodeStoredValue, type StoredValue } from '../bytes/store-bytes.ts';
import { runScript, type ScriptArgument } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';
import type { WorkerIdentity } from '../workers/register-worker.ts';
import type { RequeueOutcome } from '../workers/sweep-workers.ts';

/**
 * `outputs`: the number of outputs it must have; if one is missing, the outcome is `incomplete` and nothing is written.
 */
export type RequestEnd =
  | { state: 'succeeded'; outputs: number }
  | { state: 'canceled' }
  /** `failure`: for operators only. */
  | { state: 'failed'; error: RequestError; failure?: Failure | undefined };

/** Progress of a request over all its outputs; `total` is absent if it is unknown. */
export type RequestProgress = Omit<OutputProgress, 'index'>;

/** Max lengths of a failure's message and details, in UTF-16 code units; the worker's log has all of them. */
const maxFailureLength = 500;
const maxDetailsLength = 4000;

export type RequestWrite = { delivery: Delivery } & (
  | { type: 'preview'; progress: OutputProgress; of: RequestProgress; data: Uint8Array; contentType: string }
  /** `isOfText`: of an output that writes text, so it is compacted together with the text. */
  | { type: 'progress'; progress: OutputProgress; of: RequestProgress; isOfText?: boolean }
  /** `of`: progress over all outputs, if it is counted. */
  | ({ type: 'delta'; of?: RequestProgress } & OutputText)
  /** `isWhole`: the full text of that output so far; it replaces the entries that brought it. */
  | ({ type: 'snapshot'; isWhole?: boolean; of?: RequestProgress } & ChangedText & OutputText)
  | { type: 'reset'; index: number; offset: number }
  | { type: 'loading'; waitMs: number }
  | { type: 'chunk'; info: OutputInfo; chunkIndex: number; data: Uint8Array }
  /**
   * `done` is compared with earlier checkpoints to detect progress. `origin`: fingerprint of the model; other models
   * cannot resume it. `isOfText`: of an output that writes text; it is written after the text it covers.
   */
  | { type: 'checkpoint'; index: number; done: number; data: Uint8Array; origin?: string; isOfText?: boolean }
  /** Releases slots of the lease before the request has ended. */
  | { type: 'release'; slots: number }
  | { type: 'end'; end: RequestEnd }
  /** Requeues the request. `failure`: why the attempt failed, for `engine_failed`. */
  | { type: 'give-back'; reason: 'engine_failed' | 'worker_stopped'; failure?: Failure | undefined }
);

/**
 * `canceling`: written, but the request is being canceled. Nothing was written: `lost` (the request belongs to another
 * delivery), `ended` (it has ended otherwise). `finished`, `incomplete`: of an `end`. The rest: of a `give-back`.
 */
export type WriteOutcome = 'written' | 'canceling' | 'lost' | 'ended' | 'finished' | 'incomplete' | RequeueOutcome;

/**
 * Applies writes in order, atomically. Outcomes come in the order of the writes. `batch`: a number that the worker
 * increments; a batch that was already written is not written again. One round trip.
 */
export async function writeBatch(
  store: StoreConnection,
  { shard, workerId, incarnation }: WorkerIdentity,
  writes: readonly RequestWrite[],
  { batch }: { batch: number },
): Promise<WriteOutcome[]> {
  const values: ScriptArgument[] = [workerId, incarnation, batch];
  for (const write of writes) {
    const [kind, ...rest] = encode(write, workerId);
    values.push(kind, write.delivery.id, write.delivery.token, ...rest, ...Array<string>(5 - rest.length).fill(''));
  }
  const reply = await runScript(store, 'events/write-batch', store.keysOf(shard), values);
  const outcomes = reply as WriteOutcome[];
  // The reply to an earlier send was lost: if the request has changed, the next write returns it.
  return outcomes.length === 0 ? writes.map(() => 'written') : outcomes;
}

/** Encodes a write for the script: its kind and at most five values. */
function encode(write: RequestWrite, workerId: string): [kind: string, ...ScriptArgument[]] {
  switch (write.type) {
    case 'progress': {
      const { type, progress, of, isOfText = false } = write;
      const span = isOfText ? progress.index : '';
      return ['event', JSON.stringify({ type, ...progress }), '', of.done, of.total ?? 0, span];
    }
    case 'preview': {
      const { progress, of, data, contentType } = write;
      return ['event', JSON.stringify({ type: 'preview', ...progress, contentType }), data, of.done, of.total ?? 0];
    }
    case 'delta':
    case 'snapshot': {
      const { type, index, offset, text, done, facts, of } = write;
      const whole = type === 'snapshot' && write.isWhole && { isWhole: true, changedFrom: write.changedFrom };
      const body = JSON.stringify({ type, index, offset, text, done, facts, ...whole });
      const liveBody = { type, index, offset: offset + text.length, text: '', done, isWhole: true };
      return whole
        ? ['snapshot', body, index, JSON.stringify(liveBody)]
        : ['event', body, '', of?.done ?? '', of?.total ?? 0, index];
    }
    case 'reset': {
      const { type, index, offset } = write;
      return ['event', JSON.stringify({ type, index, offset }), '', '', '', index];
    }
    case 'loading':
      return ['loading', write.waitMs];
    case 'chunk': {
      const { info, chunkIndex, data } = write;
      const body = JSON.stringify({ type: 'output', output: info, chunkIndex });
      return ['output', body, data, info.index, chunkIndex, chunkIndex === info.chunks - 1 ? JSON.stringify(info) : ''];
    }
    case 'checkpoint':
      return ['checkpoint', write.index, write.data, write.done, write.origin ?? ''];
    case 'release':
      return ['release', write.slots];
    case 'end':
      return encodeEnd(write.end, workerId);
    case 'give-back':
      return ['give-back', write.reason, encodeFailure(write.failure, workerId)];
  }
}

function encodeEnd(end: RequestEnd, workerId: string): [kind: 'end', ...ScriptArgument[]] {
  if (end.state !== 'failed') return ['end', end.state, '', end.state === 'succeeded' ? end.outputs : 0, ''];
  return ['end', end.state, JSON.stringify(end.error), 0, encodeFailure(end.failure, workerId)];
}

function encodeFailure(failure: Failure | undefined, worker: string): string {
  if (failure === undefined) return '';
  const { code, message, details } = failure;
  // requeue.lua matches `code` as the first field.
  return JSON.stringify({
    code,
    message: message.slice(0, maxFailureLength),
    worker,
    details: details?.slice(0, maxDetailsLength),
  });
}

export interface SplitOutputOptions {
  index: number;
  contentType: string;
  data: Uint8Array;
  /** Value to write to Redis (from `storeBytes`); the bytes themselves by default. */
  stored?: StoredValue;
  /** Metadata from the pipeline, such as seed and size. */
  facts: Metadata;
  /** Size of a chunk in bytes, a multiple of 3, so that the base64 of chunks can be concatenated. */
  chunkBytes?: number;
}

/** An image of 512 × 512 pixels takes one chunk. */
const defaultChunkBytes = 409_599;

/** Splits a finished output into the writes that store it, one per chunk; the last one makes it readable. */
export function splitOutput(
  delivery: Delivery,
  { index, contentType, data, stored: held = data, facts, chunkBytes: size = defaultChunkBytes }: SplitOutputOptions,
): RequestWrite[] {
  const chunks = Math.max(1, Math.ceil(data.byteLength / size));
  const info: OutputInfo = { ...facts, index, contentType, bytes: data.byteLength, chunks };
  return Array.from({ length: chunks }, (_value, chunkIndex) => {
    const from = chunkIndex * size;
    const chunk = encodeStoredValue(held, from, Math.min(from + size, data.byteLength));
    return { type: 'chunk', delivery, info, chunkIndex, data: chunk };
  });
}
