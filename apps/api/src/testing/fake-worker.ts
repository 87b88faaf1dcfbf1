/** Plays a worker through the store's own functions. */
import type { PictureInput } from '@darkroom/core';
import {
  type Delivery,
  readRequest,
  registerWorker,
  type RequestEnd,
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
  output(index: number, data: Uint8Array, chunkBytes?: number, cuts?: Record<string, number>): Promise<void>;
  finish(end?: RequestEnd): Promise<void>;
}

const model = 'tiny';
export const totalSteps = 4;
/** Numbers of batches, over all workers of a test file. */
let batches = 0;

function identityOf(workerId: string) {
  return { model, workerId, incarnation: 'first' };
}

export async function startWorker(
  store: StoreConnection,
  { workerId = 'w1', state = 'ready' }: { workerId?: string; state?: 'loading' | 'ready' } = {},
): Promise<void> {
  // It sends no heartbeats, and no janitor sweeps.
  await registerWorker(store, identityOf(workerId), { state, capacity: 64, info: { device: 'cpu' } });
}

/** The queue is empty, or no worker is free. */
export class NothingWaits extends Error {}

/** It was canceled, or somebody else has ended it. */
export class NotRunning extends Error {}

/** Takes the first request of the queue. */
export async function runNext(store: StoreConnection): Promise<RunningRequest> {
  const [delivery] = await dispatchNext(store);
  if (delivery === undefined) throw new NothingWaits();
  return play(store, delivery);
}

async function play(store: StoreConnection, delivery: Delivery): Promise<RunningRequest> {
  const found = await readRequest(store, delivery.id);
  if (found.status !== 'found') throw new NotRunning(found.status);
  const { seed, width, height } = found.request.input as PictureInput;
  const write = async (...writes: RequestWrite[]): Promise<WriteOutcome | undefined> =>
    (await writeBatch(store, identityOf('w1'), writes, { batch: ++batches })).at(-1);
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
    async output(index, data, chunkBytes = 409_600, cuts = {}) {
      const facts = { seed: seed + index, width, height, ...cuts };
      await write(...splitOutput(delivery, { index, contentType: 'image/png', data, facts, chunkBytes }));
    },
    async finish(end = { state: 'succeeded', outputs: 0 }) {
      const outcome = await write({ type: 'end', delivery, end });
      if (outcome !== 'finished') throw new NotRunning(outcome);
    },
  };
}
