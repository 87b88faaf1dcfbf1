import type { ModelCard } from '@darkroom/core';
import type { WorkerOptions } from '../worker-options.ts';

/** Everything a worker needs to run its model that differs between executors. */
export interface WorkerEngine extends Pick<
  WorkerOptions,
  'asset' | 'files' | 'prepare' | 'shared' | 'capacity' | 'createExecutor'
> {
  card: Pick<ModelCard, 'id'>;
  /** Device shown in the list of workers. Some executors know it only once they run. */
  device: string;
}
