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
import type { ApiContext } from '../context/context.ts';
import { ApiError, checkField } from '../http/api-error.ts';
import type { WithStore } from '../server/store-guard.ts';
import { admit, type NewRequest } from './admit.ts';
import type { ApiKey } from '../http/api-env.ts';

/** Source: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header */
export const idempotencyKey = z.string().regex(/^[\x21-\x7e]{1,255}$/);

export function checkIdempotencyKey(key: string): void {
  checkField(idempotencyKey, 'Idempotency-Key', key, '1 to 255 characters of ASCII without spaces');
}

/** The Idempotency-Key of a submission and the fingerprint of its body. */
export interface KeyedSubmission {
  key: string;
  fingerprint: string;
}

export interface AdmitOnceOptions extends KeyedSubmission {
  apiKey: ApiKey;
  created: NewRequest;
  /** Creates the request from the same body with another default model. */
  createFor: (defaultModel: string) => Promise<NewRequest>;
}

/**
 * Stores a request unless one is stored under its key; then returns that one's envelope and `duplicate`. Takes two more
 * round trips than `admit`, one of them not awaited. Throws 409 if the key was used with a different body.
 */
export async function admitOnce(
  context: ApiContext,
  { apiKey, key, fingerprint, created, createFor }: AdmitOnceOptions,
): Promise<{ result: AdmitRequestResult; envelope: RequestEnvelope }> {
  const { owner, id: newId, timeoutMs } = created.envelope;
  const subject = { owner, key };
  const claim = async (expiredId?: string): Promise<string> => {
    const { status, id, wasStored } = await context.withStore((store) => {
      const ttlMs = timeoutMs + store.resultTtlMs;
      return claimIdempotencyKey(store, subject, { fingerprint, newId, ttlMs, ...(expiredId && { expiredId }) });
    });
    // A key that is claimed but not stored may belong to a send in progress, so no stored request is expected.
    if (!wasStored || expiredId !== undefined || (await isStored(context.withStore, id, owner))) {
      if (status === 'conflict') throw idempotencyConflict();
      return id;
    }
    return claim(id);
  };
  const id = await claim();
  // The id contains the model. The default model may have changed since the key was claimed.
  const model = modelOfRequestId(id);
  const isSame = model === undefined || model === created.envelope.model;
  const rebuilt = isSame ? created : await createFor(model);
  const envelope = { ...rebuilt.envelope, id };
  const result = await admit(context, { ...rebuilt, envelope }, { apiKey, hasIdempotencyKey: true });
  const outcome = result.status === 'admitted' || result.status === 'duplicate' ? 'stored' : 'refused';
  context
    .withStore((store) => {
      const ttlMs = timeoutMs + store.resultTtlMs;
      return settleIdempotencyKey(store, subject, { id, ttlMs }, outcome);
    })
    // If this write is lost, the key stays claimed, and the same body still finds the request.
    .catch((error: unknown) =>
      context.log.warn({ request_id: id, error: String(error) }, 'idempotency key was not settled'),
    );
  return { result, envelope };
}

/** Returns the id of the request that an earlier send stored under this key with the same body, if it still exists. */
export async function findStoredId(
  withStore: WithStore,
  { owner, key, fingerprint }: KeyedSubmission & { owner: string },
): Promise<string | undefined> {
  const record = await withStore((store) => readIdempotencyKey(store, { owner, key }));
  return record?.fingerprint === fingerprint && (await isStored(withStore, record.id, owner)) ? record.id : undefined;
}

async function isStored(withStore: WithStore, id: string, owner: string): Promise<boolean> {
  return (await withStore((store) => readRequest(store, id, owner))).status === 'found';
}

export function idempotencyConflict(): ApiError {
  return new ApiError(
    409,
    'idempotency_conflict',
    'This Idempotency-Key was already used with a different body; a new request needs a new key.',
    { param: 'Idempotency-Key' },
  );
}

/** Hashes path and body; independent of the order of fields. */
export function fingerprintOf(path: string, body: unknown): string {
  const text = JSON.stringify([path, body], (_name, value: unknown) => sorted(value));
  return createHash('sha256').update(text).digest('hex');
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)));
}
