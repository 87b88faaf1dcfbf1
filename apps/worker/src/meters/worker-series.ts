import { durationBuckets, type Metrics } from '@darkroom/service';

type WorkerSeries = ReturnType<typeof createWorkerSeries>;

const seriesOf = new WeakMap<Metrics, WorkerSeries>();

/** Returns the series of a process, which its workers share. */
export function workerSeriesOf(metrics: Metrics): WorkerSeries {
  const series = seriesOf.get(metrics) ?? createWorkerSeries(metrics);
  seriesOf.set(metrics, series);
  return series;
}

export function createWorkerSeries(metrics: Metrics) {
  const labels = ['model'] as const;
  const counter = (name: string, help: string) => metrics.counter({ name, help, labels });
  const gauge = (name: string, help: string) => metrics.gauge({ name, help, labels });
  const reasons = (name: string, help: string) => metrics.counter({ name, help, labels: ['model', 'reason'] });
  return {
    stepSeconds: metrics.histogram({
      name: 'darkroom_step_seconds',
      help: 'Duration of a step, by the shape of its rows; the count is the number of steps.',
      labels: ['model', 'shape'],
      buckets: durationBuckets,
    }),
    occupancy: metrics.histogram({
      name: 'darkroom_batch_occupancy_ratio',
      help: 'Rows in a step as a fraction of the capacity.',
      labels,
      buckets: [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1],
    }),
    rowSteps: counter('darkroom_row_steps_total', 'Row steps: a step of three rows counts three.'),
    modelRows: counter(
      'darkroom_model_rows_total',
      "Rows of the model's batches: two for each row with classifier-free guidance.",
    ),
    ...textSeries(counter),
    rows: gauge('darkroom_engine_rows', 'Rows in the engine.'),
    capacity: gauge('darkroom_engine_capacity_rows', 'Max. rows per step.'),
    filesChanged: gauge(
      'darkroom_model_files_changed',
      'Files of the model that were replaced since it was loaded; the loaded ones are served until a restart.',
    ),
    joined: counter('darkroom_rows_joined_total', 'Rows that took their first step here.'),
    left: reasons('darkroom_rows_left_total', 'Rows that left, by reason: done, canceled, failed, lost, engine_lost.'),
    leasesLost: reasons(
      'darkroom_leases_lost_total',
      'Leases this worker lost: reaped (the janitor reaped the worker), refused (the fencing token of a write was stale).',
    ),
    enginesLost: counter('darkroom_engines_lost_total', 'Engine processes that died.'),
    mistakenDeaths: counter(
      'darkroom_worker_mistaken_deaths_total',
      'Times that this worker was reaped while alive, because its heartbeat came too late.',
    ),
  };
}

function textSeries(counter: (name: string, help: string) => ReturnType<Metrics['counter']>) {
  return {
    promptTokens: counter('darkroom_prompt_tokens_total', 'Prompt tokens read by the model; 0 for images.'),
    cachedPromptTokens: counter('darkroom_cached_prompt_tokens_total', 'Prompt tokens served from the prefix cache.'),
    writtenTokens: counter('darkroom_written_tokens_total', 'Generated tokens.'),
    textCalls: counter('darkroom_text_calls_total', 'Model calls after the prompt, summed over texts (NFE).'),
  };
}

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
