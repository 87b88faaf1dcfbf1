import { imageView, isoTime, progressView, promptCutView, type RequestEvent } from '@darkroom/core';
import type { OutboxEntry } from '@darkroom/store';

/** The type of the message about an event, such as `request.succeeded`. */
export function webhookType({ event }: OutboxEntry): string {
  return `request.${event.type === 'preview' ? 'progress' : event.type}`;
}

/** The body of the message about an event: names are those of the event stream, and no prompt is in it. */
export function webhookPayload(entry: OutboxEntry): string {
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
      ...detailsOf(requestId, event),
    },
  });
}

function statusOf({ type }: RequestEvent): string {
  return ['started', 'progress', 'preview'].includes(type) ? 'running' : type;
}

function detailsOf(requestId: string, event: RequestEvent): object {
  switch (event.type) {
    case 'progress':
    case 'preview':
      return progressView(event);
    case 'succeeded':
      return { ...promptCutView(event.outputs), images: event.outputs.map((output) => imageView(requestId, output)) };
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
