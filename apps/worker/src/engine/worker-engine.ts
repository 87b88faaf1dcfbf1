import type { ModelCard } from '@darkroom/core';
import type { Executor, ExecutorListener } from '@darkroom/executor';
import type { ModelAsset } from '@darkroom/store';
import type { LoadEngineOptions } from './load-engine.ts';
import type { ModelFiles } from './model-files.ts';

/** Replaces the worker by a fresh one: at once if it is forced, otherwise in its turn among the model's workers. */
export type Restart = (options?: { isForced?: boolean }) => void;

/** Everything a worker needs to run its model that differs between executors. */
export interface WorkerEngine extends Pick<LoadEngineOptions, 'prepare' | 'shared'> {
  /** The model's id, which is known before the engine has loaded it. */
  card: Pick<ModelCard, 'id'>;
  /** Data published with the card, such as a tokenizer. */
  asset?: ModelAsset | undefined;
  /** Slots, in the units of the model's kind. An upper limit if the engine reports its own capacity. */
  capacity: number;
  /** The model's files; undefined if they are not on this machine. */
  files?: Pick<ModelFiles, 'digest' | 'changed' | 'check'> | undefined;
  createExecutor: (listener: ExecutorListener) => Executor;
  /** Device shown in the list of workers. Some executors know it only once they run. */
  device: string;
}
