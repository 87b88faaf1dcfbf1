/**
 * What a worker writes while requests run: everything that has gathered goes out in one call, whatever the number of
 * requests. Every write is fenced by its delivery's token and does nothing once the request is somebody else's.
 */
import type { ChangedText, Facts, OutputInfo, OutputProgress, OutputText, RequestError } from '@darkroom/core';
import { encodeHeld, type Held } from '../bytes/keep-bytes.ts';
import { runScript, type ScriptArgument } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';
import type { WorkerIdentity } from '../workers/register-worker.ts';
import type { RequeueOutcome } from '../workers/sweep-workers.ts';

/** `outputs`: how many it must have; without one of them it is `incomplete`, and nothing is done. */
export type RequestEnd =
  | { state: 'succeeded'; outputs: number }
  | { state: 'canceled' }
  | { state: 'failed'; error: RequestError };

/** How far all outputs of a request are together; without `total` nobody knows it. */
export type RequestProgress = Omit<OutputProgress, 'index'>;

export type RequestWrite = { delivery: Delivery } & (
  | { type: 'preview'; progress: OutputProgress; of: RequestProgress; data: Uint8Array; contentType: string }
  /** `isOfText`: of an output that writes text, whose log is made short with it. */
  | { type: 'progress'; progress: OutputProgress; of: RequestProgress; isOfText?: boolean }
  /** `of`: how far all outputs are with it, where that is counted. */
  | ({ type: 'delta'; of?: RequestProgress } & OutputText)
  /** `isWhole`: all of that output's text so far, which takes the place of the entries that brought it. */
  | ({ type: 'snapshot'; isWhole?: boolean; of?: RequestProgress } & ChangedText & OutputText)
  | { type: 'reset'; index: number; offset: number }
  | { type: 'loading'; waitMs: number }
  | { type: 'chunk'; info: OutputInfo; chunkIndex: number; data: Uint8Array }
  /**
   * `done` says whether this is further than any checkpoint before. `origin`: what it was made with; others cannot go on from it.
   * `isOfText`: of an output that writes text, which it waits with.
   */
  | { type: 'checkpoint'; index: number; done: number; data: Uint8Array; origin?: string; isOfText?: boolean }
  /** Promises slots of the lease to others before the request has ended. */
  | { type: 'release'; slots: number }
  | { type: 'end'; end: RequestEnd }
  | { type: 'give-back'; reason: 'engine_failed' | 'worker_stopped' }
);

/**
 * `canceling`: written, and the request is to be dropped. `lost`: not ours any more, `ended`: it has ended otherwise;
 * nothing was written then. `finished`, `incomplete`: of an end. The rest: of what is given back.
 */
export type WriteOutcome = 'written' | 'canceling' | 'lost' | 'ended' | 'finished' | 'incomplete' | RequeueOutcome;

/**
 * Writes in order, all in one step. Outcomes come in the order of the writes. `batch` is counted up by the worker in its life: one that
 * was written before is not written again. One round trip.
 */
export async function writeBatch(
  store: StoreConnection,
  { model, workerId, incarnation }: WorkerIdentity,
  writes: readonly RequestWrite[],
  { batch }: { batch: number },
): Promise<WriteOutcome[]> {
  const values: ScriptArgument[] = [workerId, incarnation, batch, store.maxAttempts];
  for (const write of writes) {
    const [what, ...rest] = encode(write);
    values.push(what, write.delivery.id, write.delivery.token, ...rest, ...Array<string>(5 - rest.length).fill(''));
  }
  const reply = await runScript(store, 'events/write-batch', store.keysOf(model), values);
  const outcomes = reply as WriteOutcome[];
  // The answer got lost, the writes did not: whoever has to know more is told by the next.
  return outcomes.length === 0 ? writes.map(() => 'written') : outcomes;
}

/** As the script takes it: what it is, and at most five values. */
function encode(write: RequestWrite): [what: string, ...ScriptArgument[]] {
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
      const told = { type, index, offset: offset + text.length, text: '', done, isWhole: true };
      return whole
        ? ['snapshot', body, index, JSON.stringify(told)]
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
    case 'end': {
      const { end } = write;
      const error = end.state === 'failed' ? JSON.stringify(end.error) : '';
      return ['end', end.state, error, end.state === 'succeeded' ? end.outputs : 0];
    }
    case 'give-back':
      return ['give-back', write.reason];
  }
}

export interface SplitOutputOptions {
  index: number;
  contentType: string;
  data: Uint8Array;
  /** What Redis is to hold of it (`keepBytes`); the bytes themselves by default. */
  held?: Held;
  /** What the pipeline says about it, such as seed and size. */
  facts: Facts;
  /** Bytes of one chunk; rounded down to a multiple of 3, so that base64 of the chunks can be joined. */
  chunkBytes: number;
}

/** A finished output as the writes that store it, one for each chunk; the last one makes it readable. */
export function splitOutput(
  delivery: Delivery,
  { index, contentType, data, held = data, facts, chunkBytes }: SplitOutputOptions,
): RequestWrite[] {
  const size = Math.max(3, chunkBytes - (chunkBytes % 3));
  const chunks = Math.max(1, Math.ceil(data.byteLength / size));
  const info: OutputInfo = { ...facts, index, contentType, bytes: data.byteLength, chunks };
  return Array.from({ length: chunks }, (_value, chunkIndex) => {
    const from = chunkIndex * size;
    const chunk = encodeHeld(held, from, Math.min(from + size, data.byteLength));
    return { type: 'chunk', delivery, info, chunkIndex, data: chunk };
  });
}
