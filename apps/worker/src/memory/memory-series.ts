import type { Metrics } from '@darkroom/service';

/** Of a worker with several models. */
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
      help: 'What a model of `MODEL_DIRS` takes of `MEMORY_BUDGET_MB`: as it was measured, or is thought to; 0 while it sleeps.',
      labels,
    }),
  };
}
