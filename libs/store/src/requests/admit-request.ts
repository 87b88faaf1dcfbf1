import { randomBytes } from 'node:crypto';
import { modelOfShard, type RequestEnvelope } from '@darkroom/core';
import { type CallBytes, callBytesDirectly, type Attachments, storeAttachments } from '../bytes/attachments.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

export interface AdmitRequestOptions {
  /** Refuse if this many requests of the model are queued. */
  queueMaxLength: number;
  /** Behavior if no worker serves the model. */
  unserved: 'accept' | 'refuse';
  /** Weight of the owner in fair queueing. */
  weight?: number | undefined;
  /** Refuse if the owner has this many open requests (queued and running) over all models. */
  openRequestsMax?: number | undefined;
  /** Bytes that the owner's requests of this model may store: refuse this one, or let it fail once they store more. */
  ownerMaxBytes?: number | undefined;
  /**
   * Other shards of all models that count towards the owner's limits. Each is in its own slot, so these counts may be
   * slightly stale.
   */
  otherShards?: readonly string[];
  /** Replaces the envelope once the request has ended; the full envelope is retained if absent. */
  promptless?: RequestEnvelope | undefined;
  /** First characters of the prompt, for lists; absent if there is none, or prompts are not retained. */
  excerpt?: string | undefined;
  /** Exactly those that `envelope.attachments` names. */
  attachments?: Attachments | undefined;
  /** Bounds the wait for the byte store; unbounded if absent. */
  callBytes?: CallBytes | undefined;
}

/** `bytes`: what the owner's requests store. */
export type AdmitRequestResult =
  | { status: 'admitted'; position: number; isPossible: boolean; costAhead: number }
  | { status: 'overloaded'; waiting: number; costAhead: number }
  | { status: 'limited'; open: number }
  | { status: 'over-budget'; bytes: number }
  | { status: 'unserved' }
  | { status: 'forgotten' }
  | { status: 'duplicate' };

/**
 * Adds a request to the queue of its owner, or refuses it and stores nothing. Safe to send twice. One round trip, and
 * one more if other shards count towards a limit.
 *
 * @throws DarkroomError `unavailable` when its attachments cannot be stored.
 */
export async function admitRequest(
  store: StoreConnection,
  envelope: RequestEnvelope,
  { openRequestsMax, ownerMaxBytes, otherShards = [], unserved, queueMaxLength, ...rest }: AdmitRequestOptions,
): Promise<AdmitRequestResult> {
  const { owner, model } = envelope;
  const siblings = otherShards.filter((shard) => modelOfShard(shard) === model);
  const isOpenLimited = openRequestsMax !== undefined;
  const isSharded = ownerMaxBytes !== undefined && siblings.length > 0;
  // Skip the round trip if there is nothing to count.
  const counts =
    (isOpenLimited || isSharded) &&
    (await Promise.all([
      isOpenLimited ? countOpen(store, owner, otherShards) : 0,
      isSharded ? countBytes(store, owner, siblings) : 0,
    ]));
  const [openElsewhere, bytesElsewhere] = counts || [0, 0];
  const limits = {
    queued: queueMaxLength,
    servedOnly: unserved === 'refuse',
    open: openRequestsMax === undefined ? undefined : Math.max(0, openRequestsMax - openElsewhere),
    bytes: ownerMaxBytes,
    bytesElsewhere,
  };
  const reply = (await runAdmission(store, envelope, { limits, ...rest })) as AdmissionReply;
  switch (reply[0]) {
    case 'admitted':
      return { status: 'admitted', position: reply[1], isPossible: reply[2] === 1, costAhead: Number(reply[3]) };
    case 'overloaded':
      return { status: 'overloaded', waiting: reply[1], costAhead: Number(reply[2]) };
    case 'limited':
      return { status: 'limited', open: reply[1] + openElsewhere };
    case 'over-budget':
      return { status: 'over-budget', bytes: reply[1] + bytesElsewhere };
    case 'unserved':
    case 'forgotten':
    case 'duplicate':
      return { status: reply[0] };
  }
}

type AdmissionReply =
  | ['admitted', position: number, isPossible: 0 | 1, costAhead: string]
  | ['overloaded', waiting: number, costAhead: string]
  | ['limited' | 'over-budget', number]
  | ['unserved' | 'forgotten' | 'duplicate'];

interface Limits {
  /** Max queue length. */
  queued?: number;
  servedOnly?: boolean;
  /** Open requests of the owner in this shard. */
  open?: number;
  /** Bytes of the owner in all shards, and those that it stores in the other ones. */
  bytes?: number;
  bytesElsewhere?: number;
}

/**
 * Runs admit-request.lua. `limits`: none for a retry; `retryOf`: the failed request. Passes all fields that dispatch,
 * ordering and ends need as arguments, so that scripts never parse the envelope.
 */
export async function runAdmission(
  store: StoreConnection,
  envelope: RequestEnvelope,
  options: Pick<AdmitRequestOptions, 'weight' | 'promptless' | 'excerpt' | 'attachments' | 'callBytes'> & {
    limits?: Limits;
    retryOf?: string;
  },
): Promise<unknown> {
  const { limits = {}, weight = 1, promptless, excerpt = '', retryOf = '' } = options;
  const { attachments, callBytes = callBytesDirectly } = options;
  const { id, owner, webhook, kind, trace = '', cost, slots, outputs, shapeKey, priority } = envelope;
  const { timeoutMs, startTimeoutMs } = envelope;
  // Id of this call: distinguishes a resent command from another submit with the same request id.
  const admission = randomBytes(6).toString('base64url');
  const texts = [id, owner, JSON.stringify(envelope), optional(promptless), optional(webhook && { ...webhook, kind })];
  const fields = [weight, cost, slots, outputs, shapeKey, priority, timeoutMs, startTimeoutMs, store.resultTtlMs];
  const { queued = '', servedOnly = false, open = '', bytes = '', bytesElsewhere = 0 } = limits;
  const values = [...texts, retryOf, trace, admission, ...fields, queued, servedOnly ? '1' : '', open, bytes];
  values.push(bytesElsewhere, store.maxAttempts, kind, excerpt);
  const keys = store.keysOfKnownRequest(id);
  if (attachments === undefined) return runScript(store, 'requests/admit-request', keys, values);
  const stored = await callBytes(() => storeAttachments(store, id, attachments));
  const reply = await runScript(store, 'requests/admit-request', keys, [...values, ...stored.values]);
  // If the removal fails, the janitor sweeps the files.
  if ((reply as [string])[0] !== 'admitted') await callBytes(() => stored.remove()).catch(() => {});
  return reply;
}

async function countOpen(store: StoreConnection, owner: string, shards: readonly string[]): Promise<number> {
  const counts = await Promise.all(shards.map((shard) => store.redis.hget(store.keysOf(shard).open, owner)));
  return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
}

/**
 * Counts bytes that the owner's requests in these shards store. Includes expired results until the owner's next
 * admission there.
 */
async function countBytes(store: StoreConnection, owner: string, shards: readonly string[]): Promise<number> {
  const totals = await Promise.all(shards.map((shard) => store.redis.hget(store.keysOf(shard).bytes(owner), 'total')));
  return totals.reduce((sum, bytes) => sum + Number(bytes ?? 0), 0);
}

function optional(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value);
}
