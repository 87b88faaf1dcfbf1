import type { ModelCard } from '@darkroom/core';
import type { Executor, ExecutorEvent } from '@darkroom/executor';
import type { Logger, Metrics } from '@darkroom/service';
import type { StoreConnection } from '@darkroom/store';
import type { OutputEncoder } from './request/active-request.ts';
import type { LoadWatch } from './engine/load-watch.ts';

export interface WorkerOptions {
  store: StoreConnection;
  card: ModelCard;
  workerId: string;
  /** Rows that share a step. */
  capacity: number;
  chunkBytes: number;
  heartbeatMs: number;
  /** An engine that has work and says nothing for longer than this, and than its work should take, hangs. */
  engineTimeoutMs: number;
  info: Readonly<Record<string, string | number>>;
  log: Logger;
  metrics?: Metrics;
  encoder: OutputEncoder;
  /** Aborted when the process is asked to stop, however far its start has come. */
  stopSignal?: AbortSignal;
  /** Tells the system when the model cannot be loaded. */
  loads: LoadWatch;
  createExecutor: (listener: (events: readonly ExecutorEvent[]) => void) => Executor;
}
