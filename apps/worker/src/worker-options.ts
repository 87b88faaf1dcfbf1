import type { ModelCard } from '@darkroom/core';
import type { Executor, ExecutorListener } from '@darkroom/executor';
import type { Metrics } from '@darkroom/service';
import type { ModelAsset, StoreConnection } from '@darkroom/store';
import type { EngineLifeOptions } from './engine/engine-life.ts';
import type { ModelFiles } from './files/model-files.ts';
import type { EncodingKinds } from './request/output-encoder.ts';

export interface WorkerOptions extends Pick<
  EngineLifeOptions,
  'loads' | 'prepare' | 'shared' | 'sleepAfterMs' | 'retryMs' | 'stopSignal' | 'log'
> {
  store: StoreConnection;
  /** The model's id, which is known before the engine has loaded it. */
  card: Pick<ModelCard, 'id'>;
  /** Data published with the card, such as a tokenizer. */
  asset?: ModelAsset | undefined;
  /** The model's files; undefined if they are not on this machine. */
  files?: Pick<ModelFiles, 'digest' | 'changed' | 'check'> | undefined;
  workerId: string;
  kinds: EncodingKinds;
  /** Slots: rows of images or tokens of text. An upper limit if the engine reports its own capacity. */
  capacity: number;
  heartbeatMs: number;
  /** Silence after which an engine with requests counts as hung, ms; longer if its requests should take longer. */
  engineTimeoutMs: number;
  /** Shown to operators: device, host, process id, version. */
  info: Readonly<Record<string, string | number>>;
  metrics: Metrics;
  /** Replaces this worker by a fresh one, which loads the current files. */
  restart: () => void;
  createExecutor: (listener: ExecutorListener) => Executor;
}
