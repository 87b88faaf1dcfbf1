/** What the API answers. */
import type { PictureRequest } from './picture-request.ts';

/** The states after which nothing follows. */
export type EndedStatus = 'succeeded' | 'failed' | 'canceled' | 'expired';

/** Where a request is in its life. */
export type RequestStatus = 'queued' | 'running' | EndedStatus;

/** Paths below the client's `baseUrl`. */
export type RequestUrls = Record<'self' | 'events' | 'cancel', string>;

/** From one number to another, both included. */
interface Range {
  min: number;
  max: number;
}

/** Estimated seconds from now until a request ends. */
export type EtaSeconds = Range;

/** What `submit` resolves to; its `status` is `queued`, unless its idempotency key found an earlier submit. */
export type AcceptedRequest = Pick<
  RequestView,
  'request_id' | 'status' | 'queue_position' | 'eta_seconds' | 'is_possible' | 'urls'
>;

/** What `cancel` resolves to: `canceling` leaves at its next step. */
export interface CanceledRequest {
  request_id: string;
  status: 'canceled' | 'canceling';
}

/** A finished picture, without its bytes. */
export interface ImageInfo {
  /** From 0. */
  index: number;
  /** A path below the client's `baseUrl`. */
  url: string;
  seed: number;
  /** Pixels, as is `height`. */
  width: number;
  height: number;
  /** Such as `image/png`. */
  content_type: string;
  /** Size of the encoded picture. */
  bytes: number;
}

/** A finished picture. */
export interface Picture extends ImageInfo {
  /** The encoded picture, `bytes` long: a file of the type `content_type`. */
  data: Uint8Array<ArrayBuffer>;
}

/** Why a request failed. */
export interface RequestFailure {
  /** For programs, such as `worker_lost`. */
  code: string;
  /** For people. */
  message: string;
}

/** All that made the pictures: submitted again, it makes the same ones. */
export interface RequestParameters extends Required<
  Omit<
    PictureRequest,
    'prompt' | 'negative_prompt' | 'priority' | 'timeout_s' | 'start_timeout_s' | 'webhook_url' | 'webhook_events'
  >
> {
  /** Null once the request has ended, on a server that does not keep prompts. */
  prompt: string | null;
  negative_prompt: string | null;
}

/** A request as `get` sees it. Times are ISO 8601. */
export interface RequestView {
  request_id: string;
  status: RequestStatus;
  /** Running, and to leave at its next step. */
  is_canceling: boolean;
  model: string;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  /** Until when the pictures can be fetched; null while open. */
  expires_at: string | null;
  /** Requests that will be dispatched before this one; null once it runs. */
  queue_position: number | null;
  /** Left out when there is nothing to estimate from, and once it has ended. */
  eta_seconds?: EtaSeconds;
  /** Whether a live worker serves the model right now. */
  is_possible: boolean;
  /** Deliveries to a worker so far. */
  attempts: number;
  /** Steps done, over all pictures of the request. */
  step: number;
  total_steps: number;
  /** 0 to 1. */
  progress: number;
  seed: number;
  /** One per picture. */
  seeds: number[];
  parameters: RequestParameters;
  /** Tokens at the prompt's end that the model did not read, because it reads no more; null before a picture is done. */
  prompt_tokens_cut: number | null;
  /** The same of the negative prompt; 0 where guidance makes no use of it. */
  negative_prompt_tokens_cut: number | null;
  /** Those that are done. */
  images: ImageInfo[];
  /** Only of a request that failed. */
  error?: RequestFailure;
  /** The failed request that an operator had retried, and the one that was made of it. */
  retry_of?: string;
  retried_as?: string;
  urls: RequestUrls;
}

/** A request after which nothing follows. */
export type EndedRequest = RequestView & { status: EndedStatus };

/** Whether nothing follows. */
export function isEnded(request: RequestView): request is EndedRequest {
  return request.status !== 'queued' && request.status !== 'running';
}

/** A model of `/v1/models`, and what it can do. */
export interface Model {
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
  /** Pixels: width and height are multiples of `multiple`, from `min` to `max`. */
  sizes: Range & { multiple: number };
  steps: Range;
  guidance: Range;
  /** What `scheduler` takes. */
  schedulers: string[];
  /** What is longer is cut. */
  max_prompt_tokens: number;
  defaults: { size: string; num_inference_steps: number; guidance_scale: number; scheduler: string };
}
