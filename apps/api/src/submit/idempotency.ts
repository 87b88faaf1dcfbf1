import { createHash } from 'node:crypto';
import { modelOfRequestId, type RequestEnvelope } from '@darkroom/core';
import {
  type AdmitRequestResult,
  claimIdempotencyKey,
  readIdempotencyKey,
  readRequest,
  settleIdempotencyKey,
} from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import type { ApiKey } from '../auth/api-keys.ts';
import type { ApiContext } from '../context.ts';
import { ApiError, checkField } from '../http/api-error.ts';
import type { AskStore } from '../server/store-guard.ts';
import { admit, type NewRequest } from './admit.ts';

/** Letters, digits and signs, as in the draft of the header: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header */
export const idempotencyKey = z.string().regex(/^[\x21-\x7e]{1,255}$/);

export function checkIdempotencyKey(key: string): void {
  checkField(idempotencyKey, 'Idempotency-Key', key, '1 to 255 characters of ASCII without spaces');
}

/** A submission under the name that the client has for it. */
export interface Keyed {
  key: string;
  fingerprint: string;
}

export interface AdmitOnceOptions extends Keyed {
  apiKey: ApiKey;
  created: NewRequest;
  /** The same body as a request for a server whose default is this model. */
  createFor: (defaultModel: string) => Promise<NewRequest>;
}

/**
 * Stores a request unless its key stands for one already. Two more round trips than `admit`, one of them not waited for.
 * Throws 409 when the key came with another body. The envelope is not the one given when the key stands for a request
 * already: the result is `duplicate` then.
 */
export async function admitOnce(
  context: ApiContext,
  { apiKey, key, fingerprint, created, createFor }: AdmitOnceOptions,
): Promise<{ result: AdmitRequestResult; envelope: RequestEnvelope }> {
  const { owner, id: newId, timeoutMs } = created.envelope;
  const subject = { owner, key };
  const claim = async (expiredId?: string): Promise<string> => {
    const { status, id, wasStored } = await context.askStore((store) => {
      const ttlMs = timeoutMs + store.resultTtlMs;
      return claimIdempotencyKey(store, subject, { fingerprint, newId, ttlMs, ...(expiredId && { expiredId }) });
    });
    // One that is only claimed may be about to be stored: there is nothing of it yet.
    if (!wasStored || expiredId !== undefined || (await isKept(context.askStore, id, owner))) {
      if (status === 'conflict') throw idempotencyConflict();
      return id;
    }
    return claim(id);
  };
  const id = await claim();
  // The id says where it is stored; the default may have been another model when it was claimed.
  const model = modelOfRequestId(id);
  const isSame = model === undefined || model === created.envelope.model;
  const { envelope: made, attachments } = isSame ? created : await createFor(model);
  const envelope = { ...made, id };
  const result = await admit(context, { envelope, attachments }, { apiKey, isFoundAgain: true });
  const outcome = result.status === 'admitted' || result.status === 'duplicate' ? 'stored' : 'refused';
  context
    .askStore((store) => {
      const ttlMs = timeoutMs + store.resultTtlMs;
      return settleIdempotencyKey(store, subject, { id, ttlMs }, outcome);
    })
    // Lost: the key stays claimed, and the same body still finds the request.
    .catch((error: unknown) => context.log.warn({ request_id: id, error: String(error) }, 'a key was not settled'));
  return { result, envelope };
}

/** The id of a submission that was stored before, and is still kept. */
export async function findStoredId(
  askStore: AskStore,
  { owner, key, fingerprint }: Keyed & { owner: string },
): Promise<string | undefined> {
  const record = await askStore((store) => readIdempotencyKey(store, { owner, key }));
  return record?.fingerprint === fingerprint && (await isKept(askStore, record.id, owner)) ? record.id : undefined;
}

async function isKept(askStore: AskStore, id: string, owner: string): Promise<boolean> {
  return (await askStore((store) => readRequest(store, id, owner))).status === 'found';
}

export function idempotencyConflict(): ApiError {
  return new ApiError(
    409,
    'idempotency_conflict',
    'This Idempotency-Key came with another body before; a new request needs a new key.',
    { param: 'Idempotency-Key' },
  );
}

/** The same for bodies that say the same in another order. */
export function fingerprintOf(path: string, body: unknown): string {
  const text = JSON.stringify([path, body], (_name, value: unknown) => sorted(value));
  return createHash('sha256').update(text).digest('hex');
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)));
}
