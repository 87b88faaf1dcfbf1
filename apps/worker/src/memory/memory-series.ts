import type { Metrics } from '@darkroom/service';

/** Metrics of a worker process that serves several models. */
export function createMemorySeries(metrics: Metrics) {
  const labels = ['model'] as const;
  return {
    loads: metrics.counter({
      name: 'darkroom_model_loads_total',
      help: 'Times that a model of `MODEL_DIRS` was loaded.',
      labels,
    }),
    memory: metrics.gauge({
      name: 'darkroom_model_memory_bytes',
      help: 'Memory of a model of `MODEL_DIRS` that counts toward `MEMORY_BUDGET_MB`, measured or estimated; 0 while it sleeps.',
      labels,
    }),
  };
}
