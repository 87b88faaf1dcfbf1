import { isoTime, type RequestEvent } from '@darkroom/core';
import type { Kind, Kinds } from '@darkroom/kinds';
import { createWebhookId, type OutboxEntry, type WebhookMessage } from '@darkroom/store';

/** The message about an event: names in its body are those of the event stream, and no prompt is in it. */
export function webhookMessage(entry: OutboxEntry, kinds: Kinds): WebhookMessage {
  const { requestId, model, owner, url, attempt, event, retryOf } = entry;
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
      ...detailsOf(requestId, event, kinds.of(entry.kind)),
    },
  });
  const id = createWebhookId(requestId, event.sequence, owner);
  return { id, owner, requestId, type, url, payload };
}

function statusOf({ type }: RequestEvent): string {
  return type === 'started' || type === 'progress' || type === 'preview' ? 'running' : type;
}

/** Of a kind that this process does not know there is nothing to tell but the event itself. */
function detailsOf(requestId: string, event: RequestEvent, kind: Kind | undefined): object {
  if (event.type === 'progress' || event.type === 'preview') return kind?.progressView(event) ?? {};
  if (event.type === 'succeeded') return kind?.resultView(requestId, event.outputs) ?? {};
  return event.type === 'failed' ? { error: event.error } : {};
}
