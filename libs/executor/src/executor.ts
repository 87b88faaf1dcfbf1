import type { ModelCard, RowRequest } from '@darkroom/core';

/** Slots that are taken, and requests that have at least one output waiting for room. */
export interface EngineStatus {
  readonly slots: number;
  readonly waitingRequests: number;
}

export interface ExecutorHealth extends EngineStatus {
  readonly isHealthy: boolean;
  /** How long the answer took: up to one step where a step blocks the engine. */
  readonly latencyMs: number;
}

export interface ShutdownOptions {
  /** Emit a checkpoint of every row that has taken a step, so that another executor can go on. Default false. */
  readonly shouldCheckpoint?: boolean;
}

/**
 * Runs one model: by stepping rows, or by forwarding whole requests to somebody who does. Everything that happens to a
 * request comes out through the listener the executor was made with; `submit` and `cancel` only say what is wanted, and
 * take effect as soon as they can, at the next step boundary where there are steps.
 */
export interface Executor {
  /** The room that it found when it was started; absent where its maker says how much there is. */
  readonly maxSlots?: number | undefined;
  /** The process that it runs the model in, while it has one of its own: its memory is the model's. */
  readonly enginePid?: number | undefined;
  /**
   * Loads the model, or finds who has it. May be called again after `engine-lost` or `shutdown`.
   *
   * @throws DarkroomError if the model cannot be loaded, and the message says why, naming the file if it is one;
   * `unavailable` if it is running.
   */
  start(): Promise<ModelCard>;
  /**
   * Takes requests. Those that find no room wait inside, first come first served; one that no room would do for fails.
   * A request whose id is already here is ignored: it was delivered twice.
   *
   * @throws DarkroomError `unavailable` if the executor is not started or its engine is lost.
   */
  submit(requests: readonly RowRequest[]): void;
  /** Lets go of a request; `request-canceled` follows unless it has ended by then. Nothing for an id that is not here. */
  cancel(requestId: string): void;
  /** Ends an engine that hangs, at once and with all it has: `engine-lost` follows. Nothing when there is none. */
  kill(): void;
  /** Asks the engine itself; never rejects. */
  checkHealth(): Promise<ExecutorHealth>;
  /**
   * Stops, after the step under way where there are steps. Requests that have not ended by then do not end; the
   * checkpoints asked for are their last events. All events are delivered before it resolves, none after. Safe to call
   * twice.
   */
  shutdown(options?: ShutdownOptions): Promise<void>;
}
