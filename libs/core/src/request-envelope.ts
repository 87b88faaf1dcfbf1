import type { WebhookRequest } from './webhook.ts';

/**
 * A request as the queue, the former, the leases and the janitor see it. `input` is opaque to all of them: only the
 * route that wrote it and the pipeline that reads it know that it describes pictures.
 */
export interface RequestEnvelope<Input = unknown> {
  id: string;
  model: string;
  /** Who sent it: the name of an API key, and `''` on a server without keys. Only its owner sees a request. */
  owner: string;
  /** Requests with the same key may share a step. */
  shapeKey: string;
  /** Rows of the engine's table it takes, one per output. */
  rows: number;
  /** What it takes of the workers, in any unit that all requests of the model share; above 0. Owners share by it. */
  cost: number;
  /** 1 is served first. */
  priority: number;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  /** The request is `expired` if it has not ended by then. */
  deadlineMs: number;
  /** The request is `expired` if no worker has it by then. */
  startDeadlineMs: number;
  /** Absent when nobody is to be told. */
  webhook?: WebhookRequest;
  /** W3C `traceparent` of what brought it; absent when nobody traces. */
  trace?: string;
  input: Input;
}
