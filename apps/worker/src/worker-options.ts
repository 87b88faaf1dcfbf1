import type { ModelCard } from '@darkroom/core';
import type { Executor, ExecutorEvent } from '@darkroom/executor';
import type { Logger, Metrics } from '@darkroom/service';
import type { StoreConnection } from '@darkroom/store';
import type { OutputEncoder } from './active-request.ts';

export interface WorkerOptions {
  store: StoreConnection;
  card: ModelCard;
  workerId: string;
  /** Rows that share a step. */
  capacity: number;
  chunkBytes: number;
  lockMs: number;
  heartbeatMs: number;
  /** Without a heartbeat for so long the worker counts as dead. */
  ttlMs: number;
  info: Readonly<Record<string, string | number>>;
  log: Logger;
  metrics?: Metrics;
  encoder: OutputEncoder;
  createExecutor: (listener: (events: readonly ExecutorEvent[]) => void) => Executor;
}
