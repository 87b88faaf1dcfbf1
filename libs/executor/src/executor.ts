import { DarkroomError, type ModelCard, type RowRequest } from '@darkroom/core';

/** Slots in use, and requests with at least one output that waits for a slot. */
export interface EngineStatus {
  readonly slots: number;
  readonly waitingRequests: number;
}

export interface ExecutorHealth extends EngineStatus {
  readonly isHealthy: boolean;
  /** Response time of the health check: up to one step where a step blocks the engine. */
  readonly latencyMs: number;
}

export interface ShutdownOptions {
  /** Emit a checkpoint of every row that has taken a step, so that another executor can resume it. Default false. */
  readonly shouldCheckpoint?: boolean;
}

/**
 * Runs one model, by stepping rows or by forwarding whole requests to a backend. Emits events to the listener it was
 * created with. `submit` and `cancel` return at once and take effect as soon as possible: between steps where there are
 * steps.
 *
 * @example
 *   const executor: Executor = new ModuleExecutor({ module: './parrot.mjs', model: 'parrot', onEvents });
 *   const { id } = await executor.start();
 *   executor.submit([request]);
 *   // `onEvents` receives the progress and the outputs of the request, and its end.
 *   await executor.shutdown({ shouldCheckpoint: true });
 */
export interface Executor {
  /** Capacity discovered at start; absent if the caller sets it. */
  readonly maxSlots?: number | undefined;
  /** Process id of the engine, while it has its own process: that process's memory is the model's. */
  readonly enginePid?: number | undefined;
  /**
   * Loads the model, or connects to the backend that has it. Can be called again after `engine-lost` or `shutdown`.
   *
   * @throws DarkroomError if the model cannot be loaded, with a message that names the reason and the file, if any;
   * `unavailable` if the executor is already running.
   */
  start(): Promise<ModelCard>;
  /**
   * Queues requests, first come, first served. A request that exceeds the total capacity fails. A request whose id is
   * present is ignored as a duplicate delivery.
   *
   * @throws DarkroomError `unavailable` if the executor is not started or its engine is lost.
   */
  submit(requests: readonly RowRequest[]): void;
  /** Drops a request; `request-canceled` follows unless it has ended by then. Ignores unknown ids. */
  cancel(requestId: string): void;
  /** Kills a hung engine at once; `engine-lost` follows. Does nothing if there is none. */
  kill(): void;
  /** Queries the engine itself; never rejects. */
  checkHealth(): Promise<ExecutorHealth>;
  /**
   * Calls one of the engine's own methods. Absent if engines of this executor have none.
   *
   * @throws DarkroomError `invalid_request` if there is no such method, and for an error of the method.
   */
  rpc?(method: string, parameters: Readonly<Record<string, unknown>>): Promise<unknown>;
  /**
   * Stops after the current step, if there are steps. Open requests get no end event; requested checkpoints are their
   * last events. All events are delivered before it resolves, none after. Idempotent.
   */
  shutdown(options?: ShutdownOptions): Promise<void>;
}

/** Creates the error for a call that an executor cannot take in its present state. */
export function unavailable(op: string, message: string): DarkroomError {
  return new DarkroomError('unavailable', op, message);
}

/** Calls a method of an executor's engine. @throws DarkroomError `invalid_request` if its engines have none. */
export async function callMethod(
  executor: Executor,
  method: string,
  parameters: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  if (executor.rpc !== undefined) return executor.rpc(method, parameters);
  const message = 'the engine of this worker has no methods of its own, expected EXECUTOR=python';
  throw new DarkroomError('invalid_request', 'executor.rpc', message);
}
