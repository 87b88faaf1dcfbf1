import { isoTime, type RequestEvent } from '@darkroom/core';
import type { Kind, Kinds } from '@darkroom/kinds';
import { createWebhookId, type OutboxEntry, type WebhookMessage } from '@darkroom/store';

type LinkOf = (path: string) => string;

/**
 * The message about an event: names in its body are those of the event stream, and no prompt is in it.
 *
 * @param linkOf as of the views of kinds.
 */
export function webhookMessage(entry: OutboxEntry, kinds: Kinds, linkOf: LinkOf = (path) => path): WebhookMessage {
  const { requestId, model, owner, url, attempt, event, retryOf, texts } = entry;
  const type = `request.${event.type === 'preview' ? 'progress' : event.type}`;
  const payload = JSON.stringify({
    type,
    timestamp: isoTime(event.timestampMs),
    // Undefined is left out.
    data: {
      request_id: requestId,
      retry_of: retryOf,
      model,
      status: statusOf(event),
      attempt,
      ...detailsOf({ requestId, event, texts }, kinds.of(entry.kind), linkOf),
    },
  });
  const id = createWebhookId(requestId, event.sequence, owner);
  return { id, owner, requestId, type, url, payload };
}

function statusOf({ type }: RequestEvent): string {
  return type === 'started' || type === 'progress' || type === 'preview' ? 'running' : type;
}

/** Of a kind that this process does not know there is nothing to tell but the event itself. */
function detailsOf(
  { requestId, event, texts }: Pick<OutboxEntry, 'requestId' | 'event' | 'texts'>,
  kind: Kind | undefined,
  linkOf: LinkOf,
): object {
  if (event.type === 'progress' || event.type === 'preview') return kind?.progressView(event) ?? {};
  if (event.type === 'succeeded') {
    const inlined = kind?.outputs === 'text' ? bytesOf(texts) : undefined;
    return kind?.resultView(requestId, event.outputs, { inlined, linkOf }) ?? {};
  }
  return event.type === 'failed' ? { error: event.error } : {};
}

function bytesOf(texts: ReadonlyMap<number, string>): Map<number, Uint8Array> {
  return new Map([...texts].map(([index, text]) => [index, Buffer.from(text)]));
}
