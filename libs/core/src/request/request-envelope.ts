import type { WebhookRequest } from './webhook.ts';

/**
 * A request as the queue, the former, the leases and the janitor see it. `input` is opaque to all of them: only the
 * kind that made it and the pipeline that reads it know what it describes.
 */
export interface RequestEnvelope<Input = unknown> {
  id: string;
  model: string;
  /** Who sent it: the name of an API key, and `''` on a server without keys. Only its owner sees a request. */
  owner: string;
  /** Which kind of work `input` describes, such as `picture`. */
  kind: string;
  /** Requests with the same key may share a step. */
  shapeKey: string;
  /** How many results it has in the end. */
  outputs: number;
  /** What all of it takes of a worker's room at once: a picture takes 1, so n pictures take n. */
  slots: number;
  /** What it takes of the workers, in any unit that all requests of the model share; above 0. Owners share by it. */
  cost: number;
  /** The most bytes that its events, previews, checkpoints and outputs may keep in the store at once. */
  bytes: number;
  /** 1 is served first. */
  priority: number;
  /** The request is `expired` if it has not ended so long after it was stored. */
  timeoutMs: number;
  /** The request is `expired` if no worker has it so long after it was stored; at most `timeoutMs`. */
  startTimeoutMs: number;
  /** Absent when nobody is to be told. */
  webhook?: WebhookRequest;
  /** W3C `traceparent` of what brought it; absent when nobody traces. */
  trace?: string;
  /** Names of what came with it and travels beside it, such as `image`; absent when nothing did. Their bytes are stored with it. */
  attachments?: readonly string[];
  input: Input;
}
