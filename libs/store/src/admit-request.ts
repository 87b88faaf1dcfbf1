import type { RequestEnvelope, RequestState } from '@darkroom/core';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

export interface AdmitRequestOptions {
  /** Refuse when this many requests of the model wait already. */
  queueMaxLength: number;
  /** What to do while no live worker has the model. */
  unserved: 'accept' | 'refuse';
  /** The owner's part of the service beside other owners with waiting work. */
  weight?: number;
  /** Refuse when the owner has this many queued and running, over all models. */
  openRequestsMax?: number | undefined;
  /** Refuse when the owner's requests of the model would keep more bytes than this. */
  ownerMaxBytes?: number | undefined;
  /** What else the owner's open requests are counted in: each model has its own slot, so this part is a moment old. */
  otherModels?: readonly string[];
  /** What the request hash keeps in place of the envelope once the request has ended. */
  promptless?: RequestEnvelope | undefined;
}

export type AdmitRequestResult =
  | { status: 'admitted'; position: number; isPossible: boolean; costAhead: number }
  | { status: 'overloaded'; waiting: number }
  | { status: 'limited'; open: number }
  /** `bytes`: of the request; `kept`: of the owner's others. */
  | { status: 'over-budget'; bytes: number; kept: number }
  | { status: 'unserved' }
  | { status: 'duplicate' };

/**
 * Stores a request and puts its job into the model's queue: two round trips. A refused request leaves nothing behind.
 * A process that dies between the two leaves a request without a job, which nobody was promised; its deadline ends it.
 */
export async function admitRequest(
  store: StoreConnection,
  envelope: RequestEnvelope,
  options: AdmitRequestOptions,
): Promise<AdmitRequestResult> {
  const { openRequestsMax, otherModels = [] } = options;
  const elsewhere = openRequestsMax === undefined ? 0 : await countOpen(store, envelope.owner, otherModels);
  const reply = await runAdmission(store, envelope, options, elsewhere);
  switch (reply[0]) {
    case 'admitted':
      await addJob(store, envelope);
      return { status: 'admitted', position: reply[1], isPossible: reply[2] === 1, costAhead: Number(reply[3]) };
    case 'duplicate':
      // Whoever stored it may have died before it added the job; BullMQ adds a job once.
      if (reply[1] === 'queued') await addJob(store, envelope);
      return { status: 'duplicate' };
    case 'overloaded':
      return { status: 'overloaded', waiting: reply[1] };
    case 'limited':
      return { status: 'limited', open: reply[1] + elsewhere };
    case 'unserved':
      return { status: 'unserved' };
  }
}

type AdmissionReply =
  | ['admitted', number, 0 | 1, string]
  | ['overloaded' | 'limited', number]
  | ['unserved']
  | ['duplicate', RequestState];

async function runAdmission(
  store: StoreConnection,
  envelope: RequestEnvelope,
  { queueMaxLength, unserved, weight = 1, openRequestsMax, promptless }: AdmitRequestOptions,
  openElsewhere: number,
): Promise<AdmissionReply> {
  const values = [
    envelope.id,
    envelope.createdAtMs,
    queueMaxLength,
    unserved === 'refuse' ? '1' : '0',
    JSON.stringify(envelope),
    envelope.slots,
    envelope.priority,
    envelope.deadlineMs,
    envelope.startDeadlineMs,
    store.resultTtlMs,
    store.goneTtlMs,
    envelope.owner,
    weight,
    envelope.cost,
    openRequestsMax === undefined ? '' : Math.max(0, openRequestsMax - openElsewhere),
    promptless === undefined ? '' : JSON.stringify(promptless),
    envelope.webhook === undefined ? '' : JSON.stringify({ ...envelope.webhook, kind: envelope.kind }),
    envelope.outputs,
  ];
  const { base } = store.keysOf(envelope.model);
  return (await runScript(store.redis, 'admit-request', base, ...values)) as AdmissionReply;
}

/** Puts the job of a stored request into its model's queue. Safe to call twice. */
export async function addJob(
  store: StoreConnection,
  { id, model, shapeKey, slots, priority }: RequestEnvelope,
): Promise<void> {
  // The job carries only what the former groups by; the envelope is in one place, the request hash. BullMQ serves a job
  // without a priority before all that have one, so there is always one; choose-next.lua decides who is next.
  await store.queueOf(model).add('request', { shapeKey, slots }, { jobId: id, priority });
  // Not awaited: a lost wake-up costs a former one slow tick, waiting for it would cost every client a round trip.
  store.redis.publish(store.keysOf(model).wakeup, 'admitted').catch(() => {});
}

async function countOpen(store: StoreConnection, owner: string, models: readonly string[]): Promise<number> {
  const counts = await Promise.all(models.map((model) => store.redis.scard(store.keysOf(model).open(owner))));
  return counts.reduce((sum, count) => sum + count, 0);
}
