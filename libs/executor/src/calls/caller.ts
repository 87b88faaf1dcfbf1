import type { ModelCard, RowEvent, RowOutput } from '@darkroom/core';

export interface CallerFacts {
  readonly card: ModelCard;
  /** Outputs that are made at once; absent where nobody says. */
  readonly slots?: number;
}

/** Makes one output of a request. */
export interface Call {
  readonly input: unknown;
  readonly index: number;
}

/** What is said of an output before it is there. Undefined: it is at it, and there is nothing to say. */
export type Said = RowEvent | undefined;

/** Whoever runs a model that is called once for each output: another server, or a module in a process of its own. */
export interface Caller {
  /** As logs may name it. */
  readonly name: string;
  /** Finds out what it has, and starts it where it is ours to start; to be called before the others, and again after it was away. */
  describe(signal: AbortSignal): Promise<CallerFacts>;
  /** Throws where it is not ready. */
  check(signal: AbortSignal): Promise<void>;
  /**
   * Says what comes, and gives out the whole. Its place is free when this has ended, so also after `signal` was aborted: then it is
   * asked on, to its end.
   *
   * @throws DarkroomError `invalid_request` where the request cannot be served; `model_unsupported` where none can, until an
   * operator has done something; all else can be tried again.
   */
  run(call: Call, signal: AbortSignal): AsyncGenerator<Said, RowOutput, void>;
  /** Nothing is wanted of it for now. `isHurried`: it may hang, or its work is of no use any more. */
  rest(isHurried: boolean): Promise<void>;
}
