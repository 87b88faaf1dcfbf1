import type { ErrorCode, FailureCode, RowCheckpoint, RowEvent, RowOutput, TokenCounts } from '@darkroom/core';

export interface OutputRef {
  readonly requestId: string;
  readonly index: number;
}

/** The last event of a request. */
export type RequestEndEvent = { readonly requestId: string } &
  /** All requested outputs have been emitted, or `cancel` was called. */
  (
    | { readonly type: 'request-done' | 'request-canceled' }
    /**
     * An output failed, and the request's others were dropped. `message` is safe to show to the client; `cause`, the
     * stack of an unexpected error, is for the log.
     */
    | { readonly type: 'request-failed'; readonly code: ErrorCode; readonly message: string; readonly cause?: string }
    /** The request was interrupted through no fault of its own, and can be retried. `message` is for the log. */
    | {
        readonly type: 'request-lost';
        readonly message: string;
        /** `engine_error` if absent. */
        readonly code?: FailureCode;
        /** Stack of the error, for the log. */
        readonly stack?: string;
      }
  );

/** Events that every executor emits for a request. An output is raw; the receiver encodes it. */
export type BaseExecutorEvent =
  | (OutputRef & RowEvent)
  | (OutputRef & { readonly type: 'output'; readonly output: RowOutput })
  | RequestEndEvent;

/** Events of an engine that steps rows. An executor without steps never emits the last three. */
export type EngineEvent =
  | BaseExecutorEvent
  /** A row's last step comes next: a request submitted now joins when the row leaves, without an idle step. */
  | (OutputRef & { readonly type: 'row-releasing' })
  /** State from which another executor can resume the row. */
  | (OutputRef & { readonly type: 'checkpoint'; readonly checkpoint: RowCheckpoint })
  /** Statistics of one step of one group of rows. */
  | {
      readonly type: 'stats';
      readonly shapeKey: string;
      /** Rows of the table that took the step. */
      readonly rows: number;
      /** Batch size of the model call: more than `rows` where guidance needs two each. */
      readonly modelRows: number;
      /** Slots taken by the table's rows of all shapes. */
      readonly tableSlots: number;
      /** Requests with at least one row that waits for slots. */
      readonly waitingRequests: number;
      readonly stepMs: number;
      /** Present for models that write text. */
      readonly tokens?: TokenCounts;
    };

export type ExecutorEvent =
  | EngineEvent
  /**
   * The engine died. The requests in `requestIds` lose everything after their last checkpoints. `start()` creates a new
   * engine. `message` is for the log: exit code or signal.
   */
  | {
      readonly type: 'engine-lost';
      readonly message: string;
      readonly requestIds: readonly string[];
      /** `engine_error` if absent. */
      readonly code?: FailureCode;
      /** Every request would have failed alike (such as on a rejected API key), so none counts as an attempt. */
      readonly countsNoAttempt?: true;
    };

export type EventOf<Type extends ExecutorEvent['type']> = Extract<ExecutorEvent, { type: Type }>;

/**
 * Receives simultaneous events, such as those of a step, in one call and in order. An empty batch is a liveness signal.
 */
export type ExecutorListener = (events: readonly ExecutorEvent[]) => void;

const endTypes: ReadonlySet<ExecutorEvent['type']> = new Set<RequestEndEvent['type']>([
  'request-done',
  'request-canceled',
  'request-failed',
  'request-lost',
]);

export function isRequestEnd(event: ExecutorEvent): event is RequestEndEvent {
  return endTypes.has(event.type);
}
