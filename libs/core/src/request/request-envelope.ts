import type { WebhookRequest } from './webhook.ts';

/**
 * A request as seen by the queue, the former, the leases and the janitor. `input` is opaque to them: only its kind and
 * its pipeline know its shape.
 */
export interface RequestEnvelope<Input = unknown> {
  id: string;
  model: string;
  /** Name of the API key that sent it, `''` on a server without keys. Only the owner sees a request. */
  owner: string;
  /** Kind of work of `input`, such as `image`. */
  kind: string;
  /** Requests with the same key may share a step. */
  shapeKey: string;
  /** Number of outputs. */
  outputs: number;
  /** Slots of a worker that all outputs take together: an image takes 1, so n images take n. */
  slots: number;
  /** Work it causes, above 0, in a unit shared by all requests of the model. Fair queueing shares by it. */
  cost: number;
  /** 1 is served first. */
  priority: number;
  /** Deadline after admission: a request that has not ended by then is `expired`. */
  timeoutMs: number;
  /** Start deadline after admission: a request that no worker has by then is `expired`; at most `timeoutMs`. */
  startTimeoutMs: number;
  /** Absent without a webhook. */
  webhook?: WebhookRequest;
  /** W3C `traceparent` of the submit; absent without tracing. */
  trace?: string;
  /** Names of its attachments, such as `image`; absent without any. Their bytes are stored beside the envelope. */
  attachments?: readonly string[];
  input: Input;
}
