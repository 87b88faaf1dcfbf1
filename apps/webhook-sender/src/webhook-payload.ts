import { isoTime, type RequestEvent } from '@darkroom/core';
import type { Kind, Kinds } from '@darkroom/kinds';
import type { OutboxEntry } from '@darkroom/store';

/** The type of the message about an event, such as `request.succeeded`. */
export function webhookType({ event: { type } }: OutboxEntry): string {
  return `request.${type === 'preview' ? 'progress' : type}`;
}

/** The body of the message about an event: names are those of the event stream, and no prompt is in it. */
export function webhookPayload(entry: OutboxEntry, kinds: Kinds): string {
  const { requestId, model, attempt, event, retryOf } = entry;
  return JSON.stringify({
    type: webhookType(entry),
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
}

function statusOf({ type }: RequestEvent): string {
  return type === 'started' || type === 'progress' || type === 'preview' ? 'running' : type;
}

/** Of a kind that this process does not know there is nothing to tell but the event itself. */
function detailsOf(requestId: string, event: RequestEvent, kind: Kind | undefined): object {
  switch (event.type) {
    case 'progress':
    case 'preview':
      return kind?.progressView(event) ?? {};
    case 'succeeded':
      return kind?.resultView(requestId, event.outputs) ?? {};
    case 'failed':
      return { error: event.error };
    case 'queued':
    case 'started':
    case 'delta':
    case 'snapshot':
    case 'reset':
    case 'output':
    case 'canceled':
    case 'expired':
      return {};
  }
}
