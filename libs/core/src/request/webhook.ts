/** Webhooks as a request asks for them: where to, and of what to be told. */

/** What a webhook can be told of: `completed` is any end. */
export const webhookEvents = ['started', 'progress', 'completed'] as const;
export type WebhookEvent = (typeof webhookEvents)[number];

export interface WebhookRequest {
  url: string;
  events: readonly WebhookEvent[];
  /** The least time between two `progress` of a request. */
  progressIntervalMs: number;
}
