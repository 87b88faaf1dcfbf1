import { isoTime, type StoredEvent } from '@darkroom/core';
import type { Kind, Kinds } from '@darkroom/kinds';
import { createWebhookId, type OutboxEntry, type WebhookMessage } from '@darkroom/store';

import { viewPayload } from './webhook-views.ts';

type MakeUrl = (path: string) => string;

/** Functions that turn API paths into URLs. */
interface Links {
  /** Signs the path of an image, so that it needs no API key. */
  sign?: MakeUrl;
  /** Prefixes the path with the public URL, if it is configured. */
  urlOf?: MakeUrl;
}

const asItIs: MakeUrl = (path) => path;

/** Builds the webhook message for an event. Field names are those of the event stream; it contains no prompt. */
export function webhookMessage(
  entry: OutboxEntry,
  kinds: Kinds,
  { sign = asItIs, urlOf = asItIs }: Links = {},
): WebhookMessage {
  const { requestId, model, owner, url, attempt, event, retryOf, texts } = entry;
  const type = `request.${event.type === 'preview' ? 'progress' : event.type}`;
  const id = createWebhookId(requestId, event.sequence, owner);
  if (entry.view !== undefined) {
    const payload = JSON.stringify(viewPayload(entry, entry.view, sign));
    return { id, owner, requestId, type, url, payload };
  }
  const payload = JSON.stringify({
    type,
    timestamp: isoTime(event.timestampMs),
    // Undefined fields are omitted.
    data: {
      request_id: requestId,
      retry_of: retryOf,
      model,
      status: statusOf(event),
      attempt,
      ...detailsOf({ requestId, event, texts }, kinds.of(entry.kind), { linkOf: (path) => urlOf(sign(path)), urlOf }),
    },
  });
  return { id, owner, requestId, type, url, payload };
}

function statusOf({ type }: StoredEvent): string {
  return type === 'started' || type === 'progress' || type === 'preview' ? 'running' : type;
}

/** Returns the event's details; for a kind that this process does not know, only what the event itself contains. */
function detailsOf(
  { requestId, event, texts }: Pick<OutboxEntry, 'requestId' | 'event' | 'texts'>,
  kind: Kind | undefined,
  links: Record<'linkOf' | 'urlOf', MakeUrl>,
): object {
  if (event.type === 'progress' || event.type === 'preview') return kind?.progressView(event) ?? {};
  if (event.type === 'succeeded') {
    const inlined = kind?.outputs === 'text' ? bytesOf(texts) : undefined;
    return kind?.resultView(requestId, event.outputs, { inlined, ...links }) ?? {};
  }
  return event.type === 'failed' ? { error: event.error } : {};
}

function bytesOf(texts: ReadonlyMap<number, string>): Map<number, Uint8Array> {
  return new Map([...texts].map(([index, text]) => [index, Buffer.from(text)]));
}
