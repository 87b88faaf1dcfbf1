import type { Picture, RequestFailure, RequestView } from './answers.ts';

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

/** One picture is a step further. */
export interface ProgressEvent extends EventOf<'progress'> {
  /** Of the picture, from 0. */
  index: number;
  /** Steps done. */
  step: number;
  total_steps: number;
  /** 0 to 1. */
  progress: number;
  /** At some steps: the work so far as a data URL, for the `src` of an `<img>`. */
  preview?: string;
}

/**
 * A picture is done. All of its chunks came, or it was fetched. It may come a second time from the worker that takes
 * over after a `queued` event with a higher `attempt`; the later one is the one that stays.
 */
export interface ImageEvent extends EventOf<'image'>, Picture {}

/** The end: all pictures are done. Servers of before 2026-11-21 do not say what was cut. */
export interface SucceededEvent
  extends
    EventOf<'succeeded'>,
    Partial<Pick<RequestView, 'prompt_tokens_cut' | 'negative_prompt_tokens_cut'>>,
    Pick<RequestView, 'images'> {}

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
  | ProgressEvent
  | ImageEvent
  | SucceededEvent
  | FailedEvent
  | CanceledEvent
  | ExpiredEvent;
