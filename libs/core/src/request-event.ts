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
  /** What the pipeline says about it; for pictures `seed`, `width` and `height`, and how much of the prompt was cut. */
  [fact: string]: number | string;
}

/**
 * One entry of a request's event log. `sequence` counts from 1 without gaps, so a reader knows from two neighbours
 * whether it missed something; the entry's stream id is `<sequence>-0`.
 */
export type RequestEvent = { sequence: number; timestampMs: number } & (
  | { type: 'queued'; position: number; attempt: number }
  | { type: 'started'; attempt: number }
  | { type: 'progress'; index: number; step: number; totalSteps: number; preview?: Uint8Array; previewType?: string }
  | { type: 'output'; output: OutputInfo; chunkIndex: number }
  | { type: TerminalState; outputs: readonly OutputInfo[]; error?: RequestError }
);

export type RequestEventType = RequestEvent['type'];

/** What a poll sees. */
export interface RequestStatus {
  id: string;
  model: string;
  owner: string;
  state: RequestState;
  /** DELETE was accepted while running; the rows leave at the next step. */
  isCanceling: boolean;
  /** Requests that will be dispatched before this one; undefined once it is running. */
  queuePosition: number | undefined;
  /** Whether a live worker serves the model right now. */
  isPossible: boolean;
  /** As in its envelope. */
  cost: number;
  /** Of the requests that will be dispatched before it; 0 once it is running. */
  costAhead: number;
  /** Deliveries to a worker so far. */
  attempts: number;
  createdAtMs: number;
  startedAtMs: number | undefined;
  endedAtMs: number | undefined;
  /** Steps done and to do, over all rows. */
  step: number;
  totalSteps: number;
  rows: number;
  /** The request as validated, for the route that shows it. */
  input: unknown;
  outputs: readonly OutputInfo[];
  error: RequestError | undefined;
  /** Milliseconds since the epoch after which results are gone; undefined while open. */
  expiresAtMs: number | undefined;
  /** The failed request that this one asks again for, and the one that does so for this. */
  retryOf: string | undefined;
  retriedAs: string | undefined;
}
