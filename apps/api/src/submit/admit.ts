import { type RequestEnvelope, shardOfRequestId } from '@darkroom/core';
import type { Kinds } from '@darkroom/kinds';
import { admitRequest, type AdmitRequestResult, type Attachments, cancelRequest } from '@darkroom/store';
import type { ApiKey } from '../auth/api-keys.ts';
import type { ApiContext } from '../context.ts';
import { isPossibleAnywhere } from '../follow/estimate-end.ts';

/** A request that is about to be stored, and what came with it. */
export interface NewRequest {
  envelope: RequestEnvelope;
  attachments: Attachments | undefined;
}

/**
 * Stores a request, if it may come in. A client that is told that Redis is away was promised nothing and will ask again:
 * what a Redis that hung stores after that answer is taken back, so that no worker draws it, unless it will find the
 * request again (`isFoundAgain`).
 */
export async function admit(
  context: ApiContext,
  { envelope, attachments }: NewRequest,
  { apiKey: { weight, openRequests }, isFoundAgain }: { apiKey: ApiKey; isFoundAgain: boolean },
): Promise<AdmitRequestResult> {
  const { queueMaxLength, storePrompts, ownerMaxBytes } = context.config;
  const models = await context.models.get();
  const { shards = [] } = models.find(({ id }) => id === envelope.model) ?? {};
  const own = shardOfRequestId(envelope.id);
  const options = {
    // An equal part of it, as requests are spread evenly.
    queueMaxLength: Math.ceil(queueMaxLength / Math.max(1, shards.length)),
    unserved: await whenUnserved(context, envelope.model),
    weight,
    openRequestsMax: openRequests,
    ownerMaxBytes: ownerMaxBytes > 0 ? ownerMaxBytes : undefined,
    otherShards: models.flatMap((model) => model.shards).filter((shard) => shard !== own),
    promptless: storePrompts ? undefined : withoutPrivate(context.kinds)(envelope),
    attachments,
  };
  let admitting: Promise<AdmitRequestResult> | undefined;
  try {
    const result = await context.askStore((store, askBytes) => {
      admitting = admitRequest(store, envelope, { ...options, askBytes });
      return admitting;
    });
    context.metrics.submissions.inc({ model: envelope.model, outcome: result.status });
    return result;
  } catch (error) {
    if (admitting !== undefined && !isFoundAgain) void takeBack(context, envelope.id, admitting);
    throw error;
  }
}

/** A shard in which there is no worker gets one of another shard. */
async function whenUnserved(context: ApiContext, model: string): Promise<'accept' | 'refuse'> {
  const { unservedModels } = context.config;
  if (unservedModels === 'accept') return 'accept';
  return (await isPossibleAnywhere(context, { model, isPossible: false })) ? 'accept' : 'refuse';
}

/** What is kept of a request after its end on a server that does not keep prompts. */
export function withoutPrivate(kinds: Kinds): (envelope: RequestEnvelope) => RequestEnvelope {
  // Nobody here knows what is private in what another version stored.
  return ({ attachments: _attachments, ...envelope }) => ({
    ...envelope,
    input: kinds.of(envelope.kind)?.withoutPrivate(envelope.input) ?? {},
  });
}

async function takeBack({ askStore, log }: ApiContext, id: string, admitting: Promise<unknown>): Promise<void> {
  await admitting.catch(() => {});
  try {
    const { status } = await askStore((store) => cancelRequest(store, id));
    log.info({ request_id: id, status }, 'took back what was stored too late');
  } catch {
    // Away again. If it was stored at all, it is drawn for nobody or ends at its deadline.
    log.warn({ request_id: id }, 'could not take back what may be stored');
  }
}
