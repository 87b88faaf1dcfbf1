/** Plays a worker through the store's own functions. */
import { modelOfRequestId } from '@darkroom/core';
import type { PictureInput } from '@darkroom/kinds';
import {
  appendProgress,
  type Finish,
  finishRequest,
  leaseBatch,
  openJobTaker,
  readRequest,
  registerWorker,
  type StoreConnection,
  type TakenJob,
  writeOutput,
} from '@darkroom/store';

export interface RunningRequest {
  /** Outputs to write. */
  count: number;
  progress(step: number, preview?: Uint8Array, index?: number): Promise<void>;
  output(index: number, data: Uint8Array, chunkBytes?: number, cuts?: Record<string, number>): Promise<void>;
  /** Any other entry of the log. */
  entry(event: LogEntry): Promise<void>;
  finish(finish?: Finish): Promise<void>;
}

type LogEntry =
  | { type: 'delta' | 'snapshot'; offset: number; text: string }
  | { type: 'reset'; offset: number }
  | { type: 'preview'; done: number; total: number; contentType: string };

export const totalSteps = 4;

export async function startWorker(
  store: StoreConnection,
  {
    workerId = 'w1',
    state = 'ready',
    model = 'tiny',
  }: { workerId?: string; state?: 'loading' | 'ready'; model?: string } = {},
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
export async function runNext(store: StoreConnection, model = 'tiny'): Promise<RunningRequest> {
  const taker = openJobTaker(store, model, { lockMs: 60_000, stalledCheckMs: 1000 });
  const [delivery] = await taker.take(1);
  await taker.close();
  if (delivery === undefined) throw new NothingWaits();
  const lease = await leaseBatch(store, model, [delivery], { mode: 'shared', maxRows: 64, maxAttempts: 3 });
  if (lease.workerId === undefined) throw new NotRunning(lease.outcomes.join());
  return play(store, { model, workerId: lease.workerId, delivery });
}

async function inputOf(store: StoreConnection, id: string): Promise<PictureInput> {
  const result = await readRequest(store, id);
  if (result.status !== 'found') throw new Error(result.status);
  return result.request.input as PictureInput;
}

interface Played {
  model: string;
  workerId: string;
  delivery: TakenJob;
}

function play(store: StoreConnection, { model, workerId, delivery }: Played): RunningRequest {
  return {
    count: delivery.slots,
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
    entry: (event) => appendEvent(store, delivery.id, { index: 0, ...event }),
    async finish(finish = { state: 'succeeded' }) {
      const outcome = await finishRequest(store, model, workerId, delivery, finish);
      if (outcome !== 'finished') throw new NotRunning(outcome);
    },
  };
}

/** Writes an entry as the store's scripts do. */
async function appendEvent(store: StoreConnection, id: string, event: object): Promise<void> {
  const keys = store.keysOf(modelOfRequestId(id)!);
  const sequence = await store.redis.hincrby(keys.request(id), 'sequence', 1);
  const body = JSON.stringify({ ...event, timestampMs: 3000 });
  await store.redis.xadd(keys.events(id), `${sequence}-0`, 'body', body, 'attachment', '');
  await store.redis.publish(keys.events(id), `${sequence} ${body}\n`);
}
