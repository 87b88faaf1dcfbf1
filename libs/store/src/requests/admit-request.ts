import { randomBytes } from 'node:crypto';
import { modelOfShard, type RequestEnvelope } from '@darkroom/core';
import { type AskBytes, askBytesPlainly, type Attachments, keepAttachments } from '../bytes/attachments.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

export interface AdmitRequestOptions {
  /** Refuse when this many requests of the model wait already. */
  queueMaxLength: number;
  /** What to do while no worker has the model. */
  unserved: 'accept' | 'refuse';
  /** The owner's part of the service beside other owners with waiting work. */
  weight?: number | undefined;
  /** Refuse when the owner has this many queued and running, over all models. */
  openRequestsMax?: number | undefined;
  /** Refuse what could make the owner's requests of this model keep more bytes than this. */
  ownerMaxBytes?: number | undefined;
  /** Where else the owner's open requests are counted, all shards of all models: each has its own slot, so this part is a moment old. */
  otherShards?: readonly string[];
  /** What is kept of the envelope once the request has ended; all of it, if absent. */
  promptless?: RequestEnvelope | undefined;
  /** What came with it: all that `envelope.attachments` names. */
  attachments?: Attachments | undefined;
  /** Waits for where they are kept; for as long as that takes, if absent. */
  askBytes?: AskBytes | undefined;
}

/** `kept`: bytes that the owner's requests keep, or may come to; `bytes`: what this one may come to. */
export type AdmitRequestResult =
  | { status: 'admitted'; position: number; isPossible: boolean; costAhead: number }
  | { status: 'overloaded'; waiting: number; costAhead: number }
  | { status: 'limited'; open: number }
  | { status: 'over-budget'; bytes: number; kept: number }
  | { status: 'unserved' }
  | { status: 'duplicate' };

/**
 * Stores a request in its owner's line, or refuses it and stores nothing. Safe to send twice. One round trip, and one more where limits of
 * its owner are counted elsewhere, too.
 *
 * @throws DarkroomError `unavailable` when what came with it cannot be kept now.
 */
export async function admitRequest(
  store: StoreConnection,
  envelope: RequestEnvelope,
  { openRequestsMax, ownerMaxBytes, otherShards = [], unserved, queueMaxLength, ...kept }: AdmitRequestOptions,
): Promise<AdmitRequestResult> {
  const { owner, model, bytes } = envelope;
  const siblings = otherShards.filter((shard) => modelOfShard(shard) === model);
  const isOpenLimited = openRequestsMax !== undefined;
  const isSpread = ownerMaxBytes !== undefined && siblings.length > 0;
  // Where nothing is to be counted, nothing is waited for.
  const counts =
    (isOpenLimited || isSpread) &&
    (await Promise.all([
      isOpenLimited ? countOpen(store, owner, otherShards) : 0,
      isSpread ? countBytes(store, owner, siblings) : 0,
    ]));
  const [openElsewhere, keptElsewhere] = counts || [0, 0];
  const limits = {
    queued: queueMaxLength,
    servedOnly: unserved === 'refuse',
    open: openRequestsMax === undefined ? undefined : Math.max(0, openRequestsMax - openElsewhere),
    bytes: ownerMaxBytes === undefined ? undefined : Math.max(0, ownerMaxBytes - keptElsewhere),
  };
  const reply = (await runAdmission(store, envelope, { limits, ...kept })) as AdmissionReply;
  switch (reply[0]) {
    case 'admitted':
      return { status: 'admitted', position: reply[1], isPossible: reply[2] === 1, costAhead: Number(reply[3]) };
    case 'overloaded':
      return { status: 'overloaded', waiting: reply[1], costAhead: Number(reply[2]) };
    case 'limited':
      return { status: 'limited', open: reply[1] + openElsewhere };
    case 'over-budget':
      return { status: 'over-budget', bytes, kept: reply[1] + keptElsewhere };
    case 'unserved':
    case 'duplicate':
      return { status: reply[0] };
  }
}

type AdmissionReply =
  | ['admitted', position: number, isPossible: 0 | 1, costAhead: string]
  | ['overloaded', waiting: number, costAhead: string]
  | ['limited' | 'over-budget', number]
  | ['unserved' | 'duplicate'];

interface Limits {
  /** Most that wait. */
  queued?: number;
  servedOnly?: boolean;
  /** Of the owner, in this shard. */
  open?: number | undefined;
  bytes?: number | undefined;
}

/** admit-request.lua; `limits` as there, none for a retry (`retryOf`: the failed request). What dispatch, order and ends need of an envelope is given to it as facts: it never reads JSON again. */
export async function runAdmission(
  store: StoreConnection,
  envelope: RequestEnvelope,
  options: Pick<AdmitRequestOptions, 'weight' | 'promptless' | 'attachments' | 'askBytes'> & {
    limits?: Limits;
    retryOf?: string;
  },
): Promise<unknown> {
  const { limits = {}, weight = 1, promptless, attachments, askBytes = askBytesPlainly, retryOf = '' } = options;
  const { id, owner, webhook, kind, trace = '', cost, slots, outputs, shapeKey, bytes, priority } = envelope;
  const { timeoutMs, startTimeoutMs } = envelope;
  // Of this call: the same command sent again is told from another submit under the same id.
  const admission = randomBytes(6).toString('base64url');
  const texts = [id, owner, JSON.stringify(envelope), optional(promptless), optional(webhook && { ...webhook, kind })];
  const facts = [weight, cost, slots, outputs, shapeKey, bytes, priority, timeoutMs, startTimeoutMs, store.resultTtlMs];
  const { queued = '', servedOnly = false, open = '', bytes: most = '' } = limits;
  const values = [...texts, retryOf, trace, admission, ...facts, queued, servedOnly ? '1' : '', open, most];
  const keys = store.keysOfRequest(id)!;
  if (attachments === undefined) return runScript(store, 'requests/admit-request', keys, values);
  const kept = await askBytes(() => keepAttachments(store, id, attachments));
  const reply = await runScript(store, 'requests/admit-request', keys, [...values, ...kept.values]);
  // What nobody hears of here, the janitor finds.
  if ((reply as [string])[0] !== 'admitted') await askBytes(() => kept.remove()).catch(() => {});
  return reply;
}

async function countOpen(store: StoreConnection, owner: string, shards: readonly string[]): Promise<number> {
  const counts = await Promise.all(shards.map((shard) => store.redis.hget(store.keysOf(shard).open, owner)));
  return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
}

/** What the owner's requests keep there, and may come to; also what is about to be over, if no request of the owner came there since. */
async function countBytes(store: StoreConnection, owner: string, shards: readonly string[]): Promise<number> {
  const counts = await Promise.all(shards.map((shard) => store.redis.hvals(store.keysOf(shard).bytes(owner))));
  return counts.flat().reduce((sum, bytes) => sum + Number(bytes), 0);
}

function optional(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value);
}
