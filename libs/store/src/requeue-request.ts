import { Job } from 'bullmq';
import { closeJob } from './finish-request.ts';
import type { Delivery } from './lease-batch.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** `canceled`: it was to be dropped anyway. `held`: somebody has it. `ended`: nothing to requeue. */
export type RequeueOutcome = 'requeued' | 'canceled' | 'held' | 'ended';

/**
 * Requests in BullMQ's `wait` list: those whose jobs it has recovered and nobody has taken again, and those that a former
 * has chosen and is about to take. One of them that still says `running` is to be requeued: a janitor died, or lost a
 * reply, between BullMQ's step and ours.
 */
export function listRecovered(store: StoreConnection, model: string): Promise<string[]> {
  return store.queueOf(model).getRanges(['wait']);
}

/** Mirrors BullMQ's recovery of a stalled job: the request is queued again, first in line. */
export async function requeueStalled(
  store: StoreConnection,
  model: string,
  id: string,
  nowMs: number,
): Promise<RequeueOutcome> {
  const { base } = store.keysOf(model);
  const outcome = (await runScript(store.redis, 'requeue-request', base, id, nowMs, '', '', '1')) as RequeueOutcome;
  if (outcome === 'canceled') await store.queueOf(model).remove(id);
  return outcome;
}

/**
 * A worker hands a running request back, first in line of its priority: because it `stops`, which is no attempt, or
 * because its engine `failed` under it, which is one.
 */
export async function giveBackRequest(
  store: StoreConnection,
  model: string,
  workerId: string,
  { id, token }: Delivery,
  reason: 'stops' | 'failed',
  nowMs: number = Date.now(),
): Promise<RequeueOutcome> {
  const keys = store.keysOf(model);
  const reply = await runScript(
    store.redis,
    'requeue-request',
    keys.base,
    id,
    nowMs,
    token,
    workerId,
    reason === 'failed' ? '1' : '0',
  );
  if (reply === 'requeued') await giveBackJob(store, model, { id, token });
  else if (reply !== 'held') await closeJob(store, model, { id, token });
  return reply as RequeueOutcome;
}

/** Puts a taken job back at the head of its priority, and tells the formers. A job whose lock is lost stays where it is. */
export async function giveBackJob(store: StoreConnection, model: string, { id, token }: Delivery): Promise<void> {
  const queue = store.queueOf(model);
  const result = await new Job(queue, 'request', {}, {}, id).moveToWait(token).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  });
  // BullMQ sets no marker for a prioritized job that comes back, and formers wait for our wake-up anyway.
  if (result !== undefined) await store.redis.publish(store.keysOf(model).wakeup, 'given-back');
}
