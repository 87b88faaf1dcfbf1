import type { Picture, PictureView } from './answers.ts';
import type { RequestFailure } from './base-answers.ts';
import type { FinishReason, TextUsage } from './texts/text-answers.ts';

interface EventOf<Type extends string> {
  type: Type;
  /** Its place in the request's log: `stream(id, { after })` begins behind it. */
  id: string;
  request_id: string;
  /** ISO 8601. */
  timestamp: string;
}

/** It waits. Comes again when the worker that ran it was lost or stopped. */
export interface QueuedEvent extends EventOf<'queued'> {
  /** Requests that will be dispatched before this one. */
  queue_position: number;
  /** From 1. */
  attempt: number;
}

/** A worker has it. */
export interface StartedEvent extends EventOf<'started'> {
  /** From 1. */
  attempt: number;
}

/** Its worker slept, and loads the model first. */
export interface LoadingEvent extends EventOf<'loading'> {
  /** What the last load there took. */
  expected_seconds?: number;
}

/** One picture is a step further. */
export interface PictureProgressEvent extends EventOf<'progress'> {
  /** Of the picture, from 0. */
  index: number;
  /** Steps done. */
  step: number;
  total_steps: number;
  /** 0 to 1. */
  progress: number;
  /** At some steps: the work so far as a data URL, for the `src` of an `<img>`. */
  preview?: string;
  tokens?: undefined;
}

/** So many tokens of a text are written; its words come as `delta` and `snapshot`. */
export interface TextProgressEvent extends EventOf<'progress'> {
  /** Of the text, from 0. */
  index: number;
  tokens: number;
  max_tokens?: number;
  step?: undefined;
}

/** What is said of a piece of text, where it came as it was written. */
export interface TextPiece {
  token_ids?: number[];
  /** Of block diffusion: calls of the model after the prompt, up to this piece. */
  nfe?: number;
  /** For each token, with `logprobs`. */
  logprobs?: TokenLogprob[];
}

/** How probable a token was. */
export interface TokenLogprob {
  token: string;
  /** Natural logarithm. */
  logprob: number;
  /** UTF-8. */
  bytes: number[];
  top: Omit<TokenLogprob, 'top'>[];
}

/** Something was added to a text, and stays: each piece comes once. */
export interface DeltaEvent extends EventOf<'delta'>, TextPiece {
  /** Of the text, from 0. */
  index: number;
  /** Where it begins: what was before it, in UTF-16 units, as in JavaScript's strings. */
  offset: number;
  text: string;
}

/**
 * Of block diffusion: what stands in the block that is being written, `░` for each token that is not known yet. It takes
 * the place of the snapshot before it, and the delta that follows takes its place.
 */
export interface SnapshotEvent extends Omit<DeltaEvent, 'type'> {
  type: 'snapshot';
}

/** What was written from `offset` on is void: a worker that took over did not write the same. Not where models are `deterministic`. */
export interface ResetEvent extends EventOf<'reset'> {
  index: number;
  offset: number;
}

/** A text is done. All of it came, or it was fetched. */
export interface TextEvent extends EventOf<'text'> {
  /** From 0. */
  index: number;
  /** All of it. */
  text: string;
  /** Of its UTF-8. */
  bytes: number;
  finish_reason: FinishReason;
  /** The stop text that ended it. */
  stop?: string;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  /** Of the model, after the prompt. */
  calls: number;
}

/**
 * A picture is done. All of its chunks came, or it was fetched. It may come a second time from the worker that takes
 * over after a `queued` event with a higher `attempt`; the later one is the one that stays.
 */
export interface ImageEvent extends EventOf<'image'>, Picture {}

/** The end: all pictures are done. Servers of before 2026-11-21 do not say what was cut. */
export interface PicturesSucceededEvent
  extends
    EventOf<'succeeded'>,
    Partial<Pick<PictureView, 'prompt_tokens_cut' | 'negative_prompt_tokens_cut'>>,
    Pick<PictureView, 'images'> {
  usage?: undefined;
}

/** The end: all texts are done. */
export interface TextsSucceededEvent extends EventOf<'succeeded'> {
  usage: TextUsage;
  /** One for each text. */
  finish_reasons: FinishReason[];
  images?: undefined;
}

/** The end: it could not be done. */
export interface FailedEvent extends EventOf<'failed'> {
  error: RequestFailure;
}

/** The end: somebody canceled it. */
export type CanceledEvent = EventOf<'canceled'>;

/** The end: `timeout_s` or `start_timeout_s` was over. */
export type ExpiredEvent = EventOf<'expired'>;

/** What `stream` yields. */
export type RequestEvent =
  | QueuedEvent
  | StartedEvent
  | LoadingEvent
  | PictureProgressEvent
  | TextProgressEvent
  | ImageEvent
  | DeltaEvent
  | SnapshotEvent
  | ResetEvent
  | TextEvent
  | PicturesSucceededEvent
  | TextsSucceededEvent
  | FailedEvent
  | CanceledEvent
  | ExpiredEvent;
