import type { ModelCard } from '@darkroom/core';
import type { Executor, ExecutorListener } from '@darkroom/executor';
import type { Metrics } from '@darkroom/service';
import type { ModelAsset, StoreConnection } from '@darkroom/store';
import type { EngineLifeOptions } from './engine/engine-life.ts';
import type { ModelFiles } from './files/model-files.ts';
import type { ActiveRequestOptions } from './request/active-request.ts';

export interface WorkerOptions
  extends
    Pick<ActiveRequestOptions, 'encoder' | 'chunkBytes'>,
    Pick<EngineLifeOptions, 'loads' | 'shared' | 'sleepAfterMs' | 'retryMs' | 'stopSignal' | 'log'> {
  store: StoreConnection;
  /** All that has to be known before the engine has started. */
  card: Pick<ModelCard, 'id'>;
  /** What readers of the card need beside it, by what lay there at the last load. */
  asset?: ModelAsset | undefined;
  /** What the model is loaded from, where that lies here. */
  files?: Pick<ModelFiles, 'digest' | 'changed' | 'look'> | undefined;
  /** Looks before each load at what lies there: `asset` and `capacity` may be others by it. */
  prepare?: (() => Promise<void>) | undefined;
  workerId: string;
  /** What fits at once: rows of pictures, tokens of text; of an engine that finds out by itself, what it may be. */
  capacity: number;
  heartbeatMs: number;
  /** An engine that has work and says nothing for longer than this, and than its work should take, hangs. */
  engineTimeoutMs: number;
  info: Readonly<Record<string, string | number>>;
  metrics: Metrics;
  createExecutor: (listener: ExecutorListener) => Executor;
}
