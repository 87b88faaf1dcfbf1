import type { RequestError } from '@darkroom/core';
import { Job, UnrecoverableError } from 'bullmq';
import type { Delivery } from './lease-batch.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** `outputs`: how many it must have; without one of them it fails instead of succeeding. */
export type Finish =
  | { state: 'succeeded'; outputs?: number }
  | { state: 'canceled' }
  | { state: 'failed'; error: RequestError };

/** `ended`: a deadline or somebody else ended it before; `lost`: the delivery is not ours any more. Nothing was written then. */
export type FinishOutcome = 'finished' | 'lost' | 'ended';

const incomplete: Finish = {
  state: 'failed',
  error: { code: 'internal', message: 'An output could not be encoded or stored.' },
};

/** Ends a request under its fence, frees its rows, and takes its job out of the queue: two round trips. */
export async function finishRequest(
  store: StoreConnection,
  model: string,
  workerId: string,
  delivery: Delivery,
  finish: Finish,
  nowMs: number = Date.now(),
): Promise<FinishOutcome> {
  const error = finish.state === 'failed' ? JSON.stringify(finish.error) : '';
  const { base } = store.keysOf(model);
  const { id, token } = delivery;
  const outputs = finish.state === 'succeeded' ? (finish.outputs ?? 0) : 0;
  const values = [id, token, workerId, finish.state, nowMs, error, outputs];
  const reply = await runScript(store.redis, 'finish-request', base, ...values);
  if (reply === 'incomplete') return finishRequest(store, model, workerId, delivery, incomplete, nowMs);
  const outcome = reply as FinishOutcome;
  if (outcome === 'lost') return outcome;
  const failure = outcome === 'finished' && finish.state === 'failed' ? finish.error.message : undefined;
  return (await closeJob(store, model, delivery, failure)) === 'lost' ? 'lost' : outcome;
}

/** BullMQ's codes for a job that is locked by somebody else, not locked, gone or not active. */
const lostLockCodes = new Set([-1, -2, -3, -6]);

/**
 * Takes a delivered job out of the queue. With a failure it stays in BullMQ's failed set, where operators look for dead
 * requests; else nothing remains of it.
 */
export async function closeJob(
  store: StoreConnection,
  model: string,
  { id, token }: Delivery,
  failure?: string,
): Promise<'closed' | 'lost'> {
  const queue = store.queueOf(model);
  const job = new Job(queue, 'request', {}, queue.defaultJobOptions, id);
  try {
    if (failure === undefined) await job.moveToCompleted(null, token, false);
    else await job.moveToFailed(new UnrecoverableError(failure), token, false);
    return 'closed';
  } catch (error) {
    if (error instanceof Error && 'code' in error && lostLockCodes.has(Number(error.code))) return 'lost';
    throw error;
  }
}
