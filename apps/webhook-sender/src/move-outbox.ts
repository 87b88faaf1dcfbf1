import type { Kinds } from '@darkroom/kinds';
import {
  createWebhookId,
  dropOutboxEntries,
  enqueueWebhooks,
  type OutboxEntry,
  type StoreConnection,
  takeOutbox,
  type TakeOutboxOptions,
  type WebhookMessage,
} from '@darkroom/store';
import { webhookPayload, webhookType } from './webhook-payload.ts';

export interface MoveOutboxOptions extends TakeOutboxOptions {
  kinds: Kinds;
  /** Attempts of each delivery. */
  attempts: number;
}

/**
 * Moves what a model's outbox holds to the queue of deliveries; returns how many entries. A sender that dies on the way
 * leaves entries to be taken again, and their messages have the same ids then.
 */
export async function moveOutbox(
  store: StoreConnection,
  model: string,
  { kinds, attempts, ...take }: MoveOutboxOptions,
): Promise<number> {
  const entries = await takeOutbox(store, model, take);
  if (entries.length === 0) return 0;
  await enqueueWebhooks(
    store,
    entries.map((entry) => toMessage(entry, kinds)),
    { attempts },
  );
  const entryIds = entries.map(({ entryId }) => entryId);
  await dropOutboxEntries(store, model, entryIds);
  return entries.length;
}

function toMessage(entry: OutboxEntry, kinds: Kinds): WebhookMessage {
  const { requestId, owner, url, event } = entry;
  const id = createWebhookId({ requestId, sequence: event.sequence, owner });
  return { id, owner, requestId, type: webhookType(entry), url, payload: webhookPayload(entry, kinds) };
}
