import type { ModelCard } from '@darkroom/core';
import type { RowRequest } from '@darkroom/diffusion';

/** A request as an executor takes it: what the pipeline reads, and where to go on from after an interruption. */
export type ExecutorRequest = RowRequest;

/** How the engine is. */
export interface ExecutorHealth {
  readonly isHealthy: boolean;
  /** Rows in the table. */
  readonly rows: number;
  /** Requests that have at least one row waiting for room. */
  readonly waitingRequests: number;
  /** How long the answer took: up to one step, since a step blocks the engine. */
  readonly latencyMs: number;
}

/** How an executor is stopped. */
export interface ShutdownOptions {
  /** Emit a checkpoint of every row that has taken a step, so that another executor can go on. Default false. */
  readonly shouldCheckpoint?: boolean;
}

/**
 * Runs one model. Everything that happens to a request comes out through the listener the executor was made with;
 * `submit` and `cancel` only say what is wanted, and take effect at the next step boundary.
 */
export interface Executor {
  /**
   * Loads the model. May be called again after `engine-lost` or `shutdown`.
   *
   * @throws DarkroomError if the model cannot be loaded; the message says why, naming the file if it is one.
   */
  start(): Promise<ModelCard>;
  /**
   * Takes requests. Those that find no room wait inside, first come first served. A request whose id is already here is
   * ignored: it was delivered twice.
   *
   * @throws DarkroomError `unavailable` if the executor is not started or its engine is lost.
   */
  submit(requests: readonly ExecutorRequest[]): void;
  /** Takes a request's rows out at the next step boundary; `request-canceled` follows. Nothing for an id that is not here. */
  cancel(requestId: string): void;
  /** Ends an engine that hangs, at once and with all it has: `engine-lost` follows. Nothing when there is none. */
  kill(): void;
  /** Asks the engine itself; never rejects. */
  checkHealth(): Promise<ExecutorHealth>;
  /**
   * Stops after the step under way. Requests that have not ended by then do not end; the checkpoints asked for are their
   * last events. All events are delivered before it resolves, none after. Safe to call twice.
   */
  shutdown(options?: ShutdownOptions): Promise<void>;
}
