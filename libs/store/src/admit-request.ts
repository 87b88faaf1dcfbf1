import type { RequestEnvelope } from '@darkroom/core';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

export interface AdmitRequestOptions {
  /** Refuse when this many requests of the model wait already. */
  queueMaxLength: number;
  /** What to do while no live worker has the model. */
  unserved: 'accept' | 'refuse';
}

export type AdmitRequestResult =
  | { status: 'admitted'; position: number; isPossible: boolean }
  | { status: 'overloaded'; waiting: number }
  | { status: 'unserved' }
  | { status: 'duplicate' };

/**
 * Stores a request and puts its job into the model's queue: two round trips. A refused request leaves nothing behind.
 * A process that dies between the two leaves a request without a job, which nobody was promised; its deadline ends it.
 */
export async function admitRequest(
  store: StoreConnection,
  envelope: RequestEnvelope,
  { queueMaxLength, unserved }: AdmitRequestOptions,
): Promise<AdmitRequestResult> {
  const keys = store.keysOf(envelope.model);
  const reply = (await runScript(
    store.redis,
    'admit-request',
    keys.base,
    envelope.id,
    envelope.createdAtMs,
    queueMaxLength,
    unserved === 'refuse' ? '1' : '0',
    JSON.stringify(envelope),
    envelope.rows,
    envelope.priority,
    envelope.deadlineMs,
    envelope.startDeadlineMs,
    store.resultTtlMs,
    store.goneTtlMs,
    envelope.owner,
  )) as ['admitted', number, 0 | 1] | ['overloaded', number] | ['unserved'] | ['duplicate'];
  switch (reply[0]) {
    case 'admitted': {
      // The job carries only what the former groups by; the envelope is in one place, the request hash.
      const job = { shapeKey: envelope.shapeKey, rows: envelope.rows };
      // BullMQ serves a job without a priority before all that have one, so there is always one.
      await store.queueOf(envelope.model).add('request', job, { jobId: envelope.id, priority: envelope.priority });
      // Not awaited: a lost wake-up costs a former one slow tick, waiting for it would cost every client a round trip.
      store.redis.publish(keys.wakeup, 'admitted').catch(() => {});
      return { status: 'admitted', position: reply[1], isPossible: reply[2] === 1 };
    }
    case 'overloaded':
      return { status: 'overloaded', waiting: reply[1] };
    case 'unserved':
    case 'duplicate':
      return { status: reply[0] };
  }
}
