import type { ModelCard } from '@darkroom/core';
import type { WorkerOptions } from '../worker-options.ts';

/** What a worker is given to run its model with: all that differs between the executors. */
export interface WorkerEngine extends Pick<
  WorkerOptions,
  'asset' | 'files' | 'prepare' | 'shared' | 'capacity' | 'encoder' | 'createExecutor'
> {
  card: Pick<ModelCard, 'id'>;
  /** For the list of workers: what it runs on. It may be known only when it runs. */
  device: string;
}
