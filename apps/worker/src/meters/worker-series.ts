import { durationBuckets, type Metrics } from '@darkroom/service';

type WorkerSeries = ReturnType<typeof createWorkerSeries>;

const seriesOf = new WeakMap<Metrics, WorkerSeries>();

/** Of one process, whose workers share them. */
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
      help: 'How long a step took, by the shape of its rows; its count is that of the steps.',
      labels: ['model', 'shape'],
      buckets: durationBuckets,
    }),
    occupancy: metrics.histogram({
      name: 'darkroom_batch_occupancy_ratio',
      help: 'Rows that took a step together, of those that could.',
      labels,
      buckets: [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1],
    }),
    rowSteps: counter('darkroom_row_steps_total', 'Steps of rows: a step of three rows counts three.'),
    modelRows: counter(
      'darkroom_model_rows_total',
      "Rows of the model's batches: two for each row that guidance doubles.",
    ),
    ...textSeries(counter),
    rows: gauge('darkroom_engine_rows', 'Rows that are under way.'),
    capacity: gauge('darkroom_engine_capacity_rows', 'Rows that can share a step.'),
    filesChanged: gauge(
      'darkroom_model_files_changed',
      'Files of the model that were replaced since it was loaded: what was loaded is served until a reload.',
    ),
    joined: counter('darkroom_rows_joined_total', 'Rows that took their first step here.'),
    left: reasons('darkroom_rows_left_total', 'Rows that left: done, canceled, failed, lost, engine_lost.'),
    leasesLost: reasons(
      'darkroom_leases_lost_total',
      'Requests that were taken from this worker: buried (it was taken for dead), refused (a write was told so).',
    ),
    enginesLost: counter('darkroom_engines_lost_total', 'Engine processes that died.'),
    mistakenDeaths: counter(
      'darkroom_worker_mistaken_deaths_total',
      'Times that this worker was buried alive, because its heartbeat came too late.',
    ),
  };
}

function textSeries(counter: (name: string, help: string) => ReturnType<Metrics['counter']>) {
  return {
    promptTokens: counter('darkroom_prompt_tokens_total', 'Tokens of prompts that the model has read; 0 of pictures.'),
    cachedPromptTokens: counter(
      'darkroom_cached_prompt_tokens_total',
      'Tokens of prompts that it did not have to read, because other texts began with them.',
    ),
    writtenTokens: counter('darkroom_written_tokens_total', 'Tokens that were written.'),
    textCalls: counter('darkroom_text_calls_total', 'Calls of the model after the prompt, those of each text (nfe).'),
  };
}
