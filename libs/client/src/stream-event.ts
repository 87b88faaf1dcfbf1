import type { ImageInfo, Picture, RequestFailure } from './answers.ts';

interface EventBase {
  /** Its place in the request's log: `stream(id, { after })` begins behind it. */
  id: string;
  request_id: string;
  /** ISO 8601. */
  timestamp: string;
}

/** It waits. Comes again when the worker that ran it was lost or stopped. */
export interface QueuedEvent extends EventBase {
  type: 'queued';
  /** Requests that will be dispatched before this one. */
  queue_position: number;
  /** From 1. */
  attempt: number;
}

/** A worker has it. */
export interface StartedEvent extends EventBase {
  type: 'started';
  /** From 1. */
  attempt: number;
}

/** One picture is a step further. */
export interface ProgressEvent extends EventBase {
  type: 'progress';
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
export interface ImageEvent extends EventBase, Picture {
  type: 'image';
}

/** The end: all pictures are done. */
export interface SucceededEvent extends EventBase {
  type: 'succeeded';
  /** As in `RequestView`. Servers of before 2026-11-21 do not say it. */
  prompt_tokens_cut?: number | null;
  negative_prompt_tokens_cut?: number | null;
  images: ImageInfo[];
}

/** The end: it could not be done. */
export interface FailedEvent extends EventBase {
  type: 'failed';
  error: RequestFailure;
}

/** The end: somebody canceled it. */
export interface CanceledEvent extends EventBase {
  type: 'canceled';
}

/** The end: `timeout_s` or `start_timeout_s` was over. */
export interface ExpiredEvent extends EventBase {
  type: 'expired';
}

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

/** A part of a picture, as `image` events bring it. */
export interface ChunkEvent extends EventBase, ImageInfo {
  type: 'image';
  /** From 0. */
  chunk_index: number;
  total_chunks: number;
  /** Null when the bytes were gone when the event was read. */
  b64: string | null;
}

/** An event as the API sends it: pictures in chunks. */
export type SentEvent = Exclude<RequestEvent, ImageEvent> | ChunkEvent;

const endTypes: ReadonlySet<string> = new Set<SentEvent['type']>(['succeeded', 'failed', 'canceled', 'expired']);
const types: ReadonlySet<string> = new Set([...endTypes, 'queued', 'started', 'progress', 'image']);

/** Whether this version of the client knows the event; later ones of the API may bring others. */
export function isKnownType(type: string | undefined): type is SentEvent['type'] {
  return type !== undefined && types.has(type);
}

/** Whether nothing follows. */
export function isEnd({ type }: SentEvent): boolean {
  return endTypes.has(type);
}
