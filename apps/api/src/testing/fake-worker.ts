/** Plays a worker through the store's own functions. */
import type { ChangedText, Metadata, Failure, OutputText } from '@darkroom/core';
import type { ImageInput } from '@darkroom/kinds';
import {
  type Delivery,
  readRequest,
  registerWorker,
  type RequestEnd,
  type RequestProgress,
  type RequestWrite,
  splitOutput,
  type StoreConnection,
  writeBatch,
  type WriteOutcome,
} from '@darkroom/store';
import { dispatchNext } from '@darkroom/testing';

export interface RunningRequest {
  /** Outputs to write. */
  count: number;
  progress(step: number, preview?: Uint8Array, index?: number): Promise<void>;
  output(index: number, data: Uint8Array, chunkBytes?: number, more?: Metadata): Promise<void>;
  /** Any other write. */
  entry(event: LogEntry): Promise<void>;
  finish(end?: RequestEnd): Promise<void>;
  /** Requeues the request, as after an engine crash. */
  requeue(failure: Failure): Promise<void>;
}

type LogEntry =
  | ({ type: 'delta'; of?: RequestProgress } & Omit<OutputText, 'index'> & { index?: number })
  | ({ type: 'snapshot'; isWhole?: boolean } & ChangedText & Omit<OutputText, 'index'> & { index?: number })
  | { type: 'reset'; offset: number }
  | { type: 'preview'; done: number; total: number; contentType: string };

export const totalSteps = 4;
/** Last batch number, over all workers of a test file. */
let batches = 0;

function identityOf(model: string, workerId: string) {
  return { shard: model, workerId, incarnation: 'first' };
}

export async function startWorker(
  store: StoreConnection,
  {
    workerId = 'w1',
    state = 'ready',
    model = 'tiny',
  }: { workerId?: string; state?: 'loading' | 'ready'; model?: string } = {},
): Promise<void> {
  // Sends no heartbeats: no janitor sweeps in tests.
  await registerWorker(store, identityOf(model, workerId), { state, capacity: 64, info: { device: 'cpu' } });
}

/** The queue is empty, or no worker is free. */
export class NothingWaits extends Error {}

/** The request was canceled or has ended. */
export class NotRunning extends Error {}

/** Leases the first request of the queue. */
export async function runNext(store: StoreConnection, model = 'tiny'): Promise<RunningRequest> {
  const [delivery] = await dispatchNext(store, 1, { shard: model });
  if (delivery === undefined) throw new NothingWaits();
  return play(store, model, delivery);
}

async function play(store: StoreConnection, model: string, delivery: Delivery): Promise<RunningRequest> {
  const found = await readRequest(store, delivery.id);
  if (found.status !== 'found') throw new NotRunning(found.status);
  const { seed, width, height } = found.request.input as ImageInput;
  const write = async (...writes: RequestWrite[]): Promise<WriteOutcome | undefined> =>
    (await writeBatch(store, identityOf(model, 'w1'), writes, { batch: ++batches })).at(-1);
  return {
    count: found.request.outputCount,
    async progress(done, preview, index = 0) {
      const progress = { index, done, total: totalSteps };
      const of = { done, total: totalSteps };
      await write(
        preview === undefined
          ? { type: 'progress', delivery, progress, of }
          : { type: 'preview', delivery, progress, of, data: preview, contentType: 'image/webp' },
      );
    },
    async output(index, data, chunkBytes, more = {}) {
      const facts = { seed: seed + index, width, height, ...more };
      await write(...splitOutput(delivery, { index, contentType: 'image/png', data, facts, chunkBytes }));
    },
    async requeue(failure) {
      await write({ type: 'give-back', delivery, reason: 'engine_failed', failure });
    },
    async entry(event) {
      if (event.type !== 'preview') return void (await write({ index: 0, ...event, delivery }));
      // Empty bytes stand for expired ones.
      const { done, total, contentType } = event;
      const data = new Uint8Array();
      await write({
        type: 'preview',
        delivery,
        progress: { index: 0, done, total },
        of: { done, total },
        data,
        contentType,
      });
    },
    async finish(end = { state: 'succeeded', outputs: 0 }) {
      const outcome = await write({ type: 'end', delivery, end });
      if (outcome !== 'finished') throw new NotRunning(outcome);
    },
  };
}
