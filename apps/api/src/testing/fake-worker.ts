/** Plays a worker through the store's own functions. */
import type { PictureInput } from '@darkroom/core';
import {
  appendProgress,
  type Delivery,
  type Finish,
  finishRequest,
  leaseBatch,
  openJobTaker,
  readRequest,
  registerWorker,
  type StoreConnection,
  writeOutput,
} from '@darkroom/store';

export interface RunningRequest {
  /** Outputs to write. */
  count: number;
  progress(step: number, preview?: Uint8Array, index?: number): Promise<void>;
  output(index: number, data: Uint8Array, chunkBytes?: number, cuts?: Record<string, number>): Promise<void>;
  finish(finish?: Finish): Promise<void>;
}

const model = 'tiny';
export const totalSteps = 4;

export async function startWorker(
  store: StoreConnection,
  { workerId = 'w1', state = 'ready' }: { workerId?: string; state?: 'loading' | 'ready' } = {},
): Promise<void> {
  const identity = { model, workerId, incarnation: 'first' };
  // It sends no heartbeats: long enough for the longest test.
  await registerWorker(store, identity, { state, capacity: 64, ttlMs: 900_000, info: { device: 'cpu' } });
}

/** The queue is empty. */
export class NothingWaits extends Error {}

/** It was canceled, or somebody else has ended it. */
export class NotRunning extends Error {}

/** Takes the first request of the queue. */
export async function runNext(store: StoreConnection): Promise<RunningRequest> {
  const taker = openJobTaker(store, model, { lockMs: 60_000, stalledCheckMs: 1000 });
  const [delivery] = await taker.take(1);
  await taker.close();
  if (delivery === undefined) throw new NothingWaits();
  const lease = await leaseBatch(store, model, [delivery], { mode: 'shared', maxRows: 64, maxAttempts: 3 });
  if (lease.workerId === undefined) throw new NotRunning(lease.outcomes.join());
  return play(store, delivery, lease.workerId, delivery.slots);
}

async function inputOf(store: StoreConnection, id: string): Promise<PictureInput> {
  const result = await readRequest(store, id);
  if (result.status !== 'found') throw new Error(result.status);
  return result.request.input as PictureInput;
}

function play(store: StoreConnection, delivery: Delivery, workerId: string, count: number): RunningRequest {
  return {
    count,
    async progress(done, preview, index = 0) {
      const total = totalSteps;
      const steps = { index, done, total, requestDone: done, requestTotal: total, timestampMs: 1000 };
      const picture = preview === undefined ? {} : { preview: { data: preview, contentType: 'image/webp' } };
      await appendProgress(store, model, delivery, { ...steps, ...picture });
    },
    async output(index, data, chunkBytes = 409_600, cuts = {}) {
      const { seed, width, height } = await inputOf(store, delivery.id);
      const facts = { seed: seed + index, width, height, ...cuts };
      const contentType = 'image/png';
      await writeOutput(store, model, delivery, { index, contentType, data, facts, chunkBytes, timestampMs: 2000 });
    },
    async finish(finish = { state: 'succeeded' }) {
      const outcome = await finishRequest(store, model, workerId, delivery, finish);
      if (outcome !== 'finished') throw new NotRunning(outcome);
    },
  };
}
