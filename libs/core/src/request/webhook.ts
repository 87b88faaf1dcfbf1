/** Webhooks of a request: receiver and subscribed events. */

/** Events that a client can subscribe to; `completed` is any terminal state. */
export const webhookEvents = ['started', 'progress', 'completed'] as const;
export type WebhookEvent = (typeof webhookEvents)[number];

/** Format of messages in the style of another API. */
export interface WebhookView {
  name: 'fal' | 'replicate';
  /** Base URL by which the client reached the API; URLs in messages begin with it. */
  root: string;
  /** The request's input without private fields: no message has a prompt. */
  input: unknown;
}

export interface WebhookRequest {
  url: string;
  /** `output`: an output is finished; only used by views. */
  events: readonly (WebhookEvent | 'output')[];
  /** Min time between two `progress` messages of a request. */
  progressIntervalMs: number;
  /** Absent: messages in our own format. */
  view?: WebhookView;
}
