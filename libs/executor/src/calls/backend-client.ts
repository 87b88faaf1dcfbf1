import type { ModelCard, RowEvent, RowOutput } from '@darkroom/core';

export interface BackendInfo {
  readonly card: ModelCard;
  /** Number of outputs that the backend computes concurrently; absent if unknown. */
  readonly slots?: number;
}

/** One output of a request. */
export interface BackendCall {
  readonly input: unknown;
  readonly index: number;
  /** Attached files by name; absent without any. */
  readonly attachments?: ReadonlyMap<string, Uint8Array> | undefined;
}

/** An event before the output is complete. Undefined is a liveness signal without content. */
export type CallEvent = RowEvent | undefined;

/** Calls a backend once per output: an upstream server, or a custom module in its own process. */
export interface BackendClient {
  /** Name for logs. */
  readonly name: string;
  /** Returns what the backend offers, after starting it if it is local. Call it first, and again after a loss. */
  describe(signal: AbortSignal): Promise<BackendInfo>;
  /** Throws if the backend is not ready. */
  check(signal: AbortSignal): Promise<void>;
  /**
   * Yields events and returns the finished output. The slot is free once the generator ends; after `signal` aborts,
   * callers keep iterating until then.
   *
   * @throws DarkroomError `invalid_request` if this request cannot be served; `model_unsupported` if none can until an
   * operator intervenes. All other errors are retryable.
   */
  run(call: BackendCall, signal: AbortSignal): AsyncGenerator<CallEvent, RowOutput, void>;
  /** Releases the backend's resources. `isForced`: it may hang or its work is no longer needed, so end it at once. */
  close(isForced: boolean): Promise<void>;
}
