import type { RequestEnvelope } from './request-envelope.ts';
import type { RequestState, TerminalState } from './request-state.ts';

/** Why a request failed; safe to show to clients. */
export interface RequestError {
  code: string;
  message: string;
}

/** Metadata of a finished output, stored beside its bytes. */
export interface OutputInfo {
  index: number;
  contentType: string;
  bytes: number;
  /** Number of stored chunks, at least 1. */
  chunks: number;
  /** Metadata from the pipeline, shown by the kind. */
  [fact: string]: number | string | boolean;
}

/** Metadata that a pipeline attaches to its results; the kind interprets it. */
export type Metadata = Readonly<Record<string, number | string | boolean>>;

/** Progress in the unit of the kind of work: steps, tokens, … */
export interface Progress {
  readonly done: number;
  /** Absent if it is unknown before the end. */
  readonly total?: number;
}

export interface TextChunk {
  /** Start in the full text, in UTF-16 code units. */
  readonly offset: number;
  readonly text: string;
  /** Progress of the output with this text; absent if it is not counted. */
  readonly done?: number;
  /** Token ids, counts. To merge two chunks, concatenate strings and take the later numbers. */
  readonly facts?: Metadata;
}

/** `index`: of the request's output. */
export type OutputProgress = { readonly index: number } & Progress;
export type OutputText = { readonly index: number } & TextChunk;

/** Field of events that replace text, resets included. */
export interface ChangedText {
  /** Lowest offset, in UTF-16 code units, from which a rerun wrote another text; absent if none did. */
  readonly changedFrom?: number;
}

/**
 * One entry of a request's event log; its stream id is `<sequence>-0`. `sequence` grows without gaps, except where a
 * `snapshot` compacted a long log. Text events carry offsets, so that reading an entry twice changes nothing: `delta`
 * appends text, `snapshot` replaces the text from its offset on, `reset` deletes it because a rerun differs. `preview`
 * counts as progress; its bytes are deleted at the end.
 */
export type StoredEvent = { sequence: number; timestampMs: number } & (
  | { type: 'queued'; position: number; attempt: number }
  | { type: 'started'; attempt: number }
  /** Its worker slept and loads the model first. `expectedMs`: duration of the last load, plus the wait for memory. */
  | { type: 'loading'; expectedMs?: number }
  | ({ type: 'progress' } & OutputProgress)
  | ({ type: 'preview'; contentType: string; data?: Uint8Array } & OutputProgress)
  /** `isWhole`: the full text so far; it replaced the entries that brought it. */
  | ({ type: 'delta' | 'snapshot'; isWhole?: true } & ChangedText & OutputText)
  | { type: 'reset'; index: number; offset: number }
  /** `data`: bytes of a small chunk, only in live events. */
  | { type: 'output'; output: OutputInfo; chunkIndex: number; data?: Uint8Array }
  | { type: TerminalState; outputs: readonly OutputInfo[]; error?: RequestError }
);

/** An event that changes the text of an output. */
export type StoredTextEvent = Extract<StoredEvent, { type: 'delta' | 'snapshot' | 'reset' }>;

type EnvelopeFields = Pick<RequestEnvelope, 'id' | 'model' | 'owner' | 'kind' | 'input' | 'slots' | 'cost'>;

/** Status of a request, as returned by a poll. */
export interface RequestSnapshot extends EnvelopeFields {
  state: RequestState;
  /** DELETE was accepted while running; it ends at the next step. */
  isCanceling: boolean;
  /** Number of requests that are dispatched before this one; undefined once it is running. */
  queuePosition: number | undefined;
  /** False if no live worker serves the model right now. */
  isPossible: boolean;
  /** Total cost of the requests that are dispatched before it; 0 once it is running. */
  costAhead: number;
  /** Expected time until its model is loaded, as reported by its worker; 0 if it is loaded or unknown. */
  loadingMs: number;
  /** Deliveries to a worker so far. */
  attempts: number;
  /** Deadline after admission, ms. */
  timeoutMs: number;
  createdAtMs: number;
  startedAtMs: number | undefined;
  endedAtMs: number | undefined;
  /** Progress over all its outputs; `total` is 0 while it is unknown. */
  done: number;
  total: number;
  /** Number of `outputs` at the end. */
  outputCount: number;
  outputs: readonly OutputInfo[];
  error: RequestError | undefined;
  /** Expiry of the results, ms since the epoch; undefined while open. */
  expiresAtMs: number | undefined;
  /** Retained for longer than other results. */
  isPinned: boolean;
  /** The failed request that this one retries, and the retry of this one. */
  retryOf: string | undefined;
  retriedAs: string | undefined;
}
