import { type RequestEnvelope, shardOfRequestId } from '@darkroom/core';
import type { Kinds } from '@darkroom/kinds';
import { admitRequest, type AdmitRequestResult, type Attachments, cancelRequest } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { isPossibleAnywhere } from '../follow/estimate-end.ts';
import type { ApiKey } from '../http/api-env.ts';

/** A validated request that is about to be stored, with its attachments. */
export interface NewRequest {
  envelope: RequestEnvelope;
  /** First characters of the prompt, for lists. */
  excerpt: string | undefined;
  attachments: Attachments | undefined;
}

/**
 * Admits and stores a request. If Redis hangs, the client gets a 503 and will retry; a request that Redis stores after
 * that is canceled, so that it does not run beside the retry. With an Idempotency-Key the retry finds the stored
 * request, and nothing is canceled.
 */
export async function admit(
  context: ApiContext,
  { envelope, excerpt, attachments }: NewRequest,
  { apiKey: { weight, openRequests }, hasIdempotencyKey }: { apiKey: ApiKey; hasIdempotencyKey: boolean },
): Promise<AdmitRequestResult> {
  const { queueMaxLength, storePrompts, ownerMaxBytes } = context.config;
  const models = await context.models.get();
  const { shards = [] } = models.find(({ id }) => id === envelope.model) ?? {};
  const ownShard = shardOfRequestId(envelope.id);
  const options = {
    // Each shard gets an equal part of the limit: requests are spread evenly over shards.
    queueMaxLength: Math.ceil(queueMaxLength / Math.max(1, shards.length)),
    unserved: await unservedPolicy(context, envelope.model),
    weight,
    openRequestsMax: openRequests,
    ownerMaxBytes: ownerMaxBytes > 0 ? ownerMaxBytes : undefined,
    otherShards: models.flatMap((model) => model.shards).filter((shard) => shard !== ownShard),
    excerpt: storePrompts ? excerpt : undefined,
    promptless: storePrompts ? undefined : withoutPrivate(context.kinds)(envelope),
    attachments,
  };
  let admitting: Promise<AdmitRequestResult> | undefined;
  try {
    const result = await context.withStore((store, callBytes) => {
      admitting = admitRequest(store, envelope, { ...options, callBytes });
      return admitting;
    });
    context.metrics.submissions.inc({ model: envelope.model, outcome: result.status });
    return result;
  } catch (error) {
    if (admitting !== undefined && !hasIdempotencyKey) void cancelLate(context, envelope.id, admitting);
    throw error;
  }
}

/**
 * Returns the policy for a shard without workers. `refuse` only if no shard of the model has any: workers move between
 * shards.
 */
async function unservedPolicy(context: ApiContext, model: string): Promise<'accept' | 'refuse'> {
  const { unservedModels } = context.config;
  if (unservedModels === 'accept') return 'accept';
  return (await isPossibleAnywhere(context, { model, isPossible: false })) ? 'accept' : 'refuse';
}

/** Returns a function that removes prompts and attachments from a request, for servers that do not store prompts. */
export function withoutPrivate(kinds: Kinds): (envelope: RequestEnvelope) => RequestEnvelope {
  // A kind stored by another version has unknown private fields: drop its whole input.
  return ({ attachments: _attachments, ...envelope }) => ({
    ...envelope,
    input: kinds.of(envelope.kind)?.withoutPrivate(envelope.input) ?? {},
  });
}

async function cancelLate({ withStore, log }: ApiContext, id: string, admitting: Promise<unknown>): Promise<void> {
  await admitting.catch(() => {});
  try {
    const { status } = await withStore((store) => cancelRequest(store, id));
    log.info({ request_id: id, status }, 'canceled a request that was stored after its client got a 503');
  } catch {
    // Redis is unavailable again. If the request was stored, it runs without a client or expires at its deadline.
    log.warn({ request_id: id }, 'could not cancel a request that may have been stored after its client got a 503');
  }
}
