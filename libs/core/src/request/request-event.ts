import type { RequestEnvelope } from './request-envelope.ts';
import type { RequestState, TerminalState } from './request-state.ts';

/** Why a request failed, in words that are safe to show. */
export interface RequestError {
  code: string;
  message: string;
}

/** Facts about one finished output, kept beside its bytes. */
export interface OutputInfo {
  index: number;
  contentType: string;
  bytes: number;
  /** Number of stored chunks, at least 1. */
  chunks: number;
  /** What the pipeline says about it, for the kind to show. */
  [fact: string]: number | string | boolean;
}

/** What a pipeline says about what it made, for the kind to understand. */
export type Facts = Readonly<Record<string, number | string | boolean>>;

/** How far something is: steps, tokens, or what else its kind of work is counted in. */
export interface Progress {
  readonly done: number;
  /** Absent where nobody knows it before the end. */
  readonly total?: number;
}

export interface TextPiece {
  /** Where it begins in the whole, in UTF-16 code units. */
  readonly offset: number;
  readonly text: string;
  /** How far its output has come with it, counted as in its progress; absent where that is not counted. */
  readonly done?: number;
  /** Token ids, counts. Of two pieces together the strings are joined, and the later numbers stand. */
  readonly facts?: Facts;
}

/** `index`: of which of the request's outputs. */
export type OutputProgress = { readonly index: number } & Progress;
export type OutputText = { readonly index: number } & TextPiece;

/** Of what takes the place of entries, resets too. */
export interface ChangedText {
  /** From where on, in UTF-16 code units, a rerun wrote another text at some time; absent where none did. */
  readonly changedFrom?: number;
}

/**
 * One entry of a request's event log; its stream id is `<sequence>-0`. `sequence` grows, and jumps only where a long log
 * was compacted: one `snapshot` then stands for the entries before it.
 *
 * `preview` counts as progress; its bytes are gone once the request has ended. `output` brings those of a small chunk where it is read as it is written. `delta` appends text. `snapshot` says what
 * stands from its offset on, and `reset` that what stood from there on is to be dropped, because a rerun differs. Readers
 * drop what they have by offset, so that reading an entry twice changes nothing.
 */
export type RequestEvent = { sequence: number; timestampMs: number } & (
  | { type: 'queued'; position: number; attempt: number }
  | { type: 'started'; attempt: number }
  /** Its worker slept, and loads the model first. `expectedMs`: what the last load took, and what it may wait for room. */
  | { type: 'loading'; expectedMs?: number }
  | ({ type: 'progress' } & OutputProgress)
  | ({ type: 'preview'; contentType: string; data?: Uint8Array } & OutputProgress)
  /** `isWhole`: took the place of the entries that brought this text, and all of it stays. */
  | ({ type: 'delta' | 'snapshot'; isWhole?: true } & ChangedText & OutputText)
  | { type: 'reset'; index: number; offset: number }
  | { type: 'output'; output: OutputInfo; chunkIndex: number; data?: Uint8Array }
  | { type: TerminalState; outputs: readonly OutputInfo[]; error?: RequestError }
);

type FixedFacts = Pick<RequestEnvelope, 'id' | 'model' | 'owner' | 'kind' | 'input' | 'slots' | 'cost'>;

/** What a poll sees. */
export interface RequestStatus extends FixedFacts {
  state: RequestState;
  /** DELETE was accepted while running; it leaves at the next step. */
  isCanceling: boolean;
  /** Requests that will be dispatched before this one; undefined once it is running. */
  queuePosition: number | undefined;
  /** Whether a live worker serves the model right now. */
  isPossible: boolean;
  /** Of the requests that will be dispatched before it; 0 once it is running. */
  costAhead: number;
  /** How long it may take until its model is in memory, as its worker said; 0 where it is, or nobody knows. */
  loadingMs: number;
  /** Deliveries to a worker so far. */
  attempts: number;
  /** It has ended so long after it was stored. */
  timeoutMs: number;
  createdAtMs: number;
  startedAtMs: number | undefined;
  endedAtMs: number | undefined;
  /** How far all its outputs are together; `total` is 0 while nobody knows it. */
  done: number;
  total: number;
  /** How many `outputs` there are in the end. */
  outputCount: number;
  outputs: readonly OutputInfo[];
  error: RequestError | undefined;
  /** Milliseconds since the epoch after which results are gone; undefined while open. */
  expiresAtMs: number | undefined;
  /** The failed request that this one asks again for, and the one that does so for this. */
  retryOf: string | undefined;
  retriedAs: string | undefined;
}
