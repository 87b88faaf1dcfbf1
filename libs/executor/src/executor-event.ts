import type { ErrorCode, RowCheckpoint, RowEvent, RowOutput, TokenCounts } from '@darkroom/core';

export interface OfOutput {
  readonly requestId: string;
  readonly index: number;
}

/** The last that is said of a request. */
export type RequestEndEvent = { readonly requestId: string } &
  /** All outputs that were asked for have been sent; or it was let go of because `cancel` was called. */
  (
    | { readonly type: 'request-done' | 'request-canceled' }
    /**
     * An output could not be made, and the others were dropped. `message` is safe to show to who sent the request; `cause`, what
     * nobody has foreseen, is for the log.
     */
    | { readonly type: 'request-failed'; readonly code: ErrorCode; readonly message: string; readonly cause?: string }
    /** Something broke off that was not its doing, and nobody else's end: it can be tried again. `message` is for the log. */
    | { readonly type: 'request-lost'; readonly message: string }
  );

/** What every executor says of a request. An output is raw, the receiver encodes it. */
export type RequestEvent =
  | (OfOutput & RowEvent)
  | (OfOutput & { readonly type: 'output'; readonly output: RowOutput })
  | RequestEndEvent;

/** What an engine says, that steps rows. An executor that has no steps never says the last three. */
export type EngineEvent =
  | RequestEvent
  /** A row is about to take its last step: whoever comes now joins when it leaves, without an idle step between. */
  | (OfOutput & { readonly type: 'row-releasing' })
  /** Where a row stands, for another executor to go on from. */
  | (OfOutput & { readonly type: 'checkpoint'; readonly checkpoint: RowCheckpoint })
  /** One step of one group of rows. */
  | {
      readonly type: 'stats';
      readonly shapeKey: string;
      /** Rows of the table that took the step. */
      readonly rows: number;
      /** Rows of the model's batch: more than `rows` where guidance needs two each. */
      readonly modelRows: number;
      /** What the rows of the table take of its room, those of all shapes. */
      readonly tableSlots: number;
      /** Requests that have at least one row waiting for room. */
      readonly waitingRequests: number;
      readonly stepMs: number;
      /** Of a model that writes text. */
      readonly tokens?: TokenCounts;
    };

export type ExecutorEvent =
  | EngineEvent
  /**
   * The engine died: of the requests that were submitted and had not ended, all is lost from the last checkpoints on.
   * `start()` makes a new one. `message` is for the log: exit code or signal.
   */
  | {
      readonly type: 'engine-lost';
      readonly message: string;
      readonly requestIds: readonly string[];
      /** Whatever was asked for would have come to this, such as with a key that is refused: it is no attempt. */
      readonly isBlameless?: true;
    };

export type EventOf<Type extends ExecutorEvent['type']> = Extract<ExecutorEvent, { type: Type }>;

/** Gets what happened at one time, such as the events of a step, in one call and in order. None: it is at it, and there is nothing to say. */
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
