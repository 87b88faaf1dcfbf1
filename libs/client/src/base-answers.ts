/** What the API answers about anything. */

/** The states after which nothing follows. */
export type EndedStatus = 'succeeded' | 'failed' | 'canceled' | 'expired';

/** Where a request is in its life. */
export type RequestStatus = 'queued' | 'running' | EndedStatus;

/** Paths below the client's `baseUrl`. */
export type RequestUrls = Record<'self' | 'events' | 'cancel', string>;

/** From one number to another, both included. */
export interface Range {
  min: number;
  max: number;
}

/** Estimated seconds from now until a request ends. */
export type EtaSeconds = Range;

/** Why a request failed. */
export interface RequestFailure {
  /** For programs, such as `worker_lost`. */
  code: string;
  /** For people. */
  message: string;
}

/** What `get` says of any request. Times are ISO 8601. */
export interface RequestViewBase {
  request_id: string;
  status: RequestStatus;
  /** Running, and to leave at its next step. */
  is_canceling: boolean;
  model: string;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  /** Until when the pictures or texts can be fetched; null while open. */
  expires_at: string | null;
  /** Requests that will be dispatched before this one; null once it runs. */
  queue_position: number | null;
  /** Left out when there is nothing to estimate from, and once it has ended. */
  eta_seconds?: EtaSeconds;
  /** Whether a live worker serves the model right now. */
  is_possible: boolean;
  /** Deliveries to a worker so far. */
  attempts: number;
  /** 0 to 1. */
  progress: number;
  seed: number;
  /** Only of a request that failed. */
  error?: RequestFailure;
  /** The failed request that an operator had retried, and the one that was made of it. */
  retry_of?: string;
  retried_as?: string;
  urls: RequestUrls;
}

/** What `/v1/models` says of any model. */
export interface ModelBase {
  id: string;
  object: 'model';
  /** Seconds since 1970. */
  created: number;
  owned_by: string;
  /** Whether a live worker serves it right now. */
  is_possible: boolean;
  /** An operator has paused it: requests wait. */
  is_paused: boolean;
  /** Such as `StableDiffusionPipeline`. */
  pipeline: string;
}
