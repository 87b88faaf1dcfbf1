import { durationBuckets, type Metrics } from '@darkroom/service';

/** What a worker counts. */
export type WorkerSeries = ReturnType<typeof createStepSeries> & ReturnType<typeof createLossSeries>;

const eighths = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1];
const model = ['model'] as const;

export function createWorkerSeries(metrics: Metrics): WorkerSeries {
  return { ...createStepSeries(metrics), ...createLossSeries(metrics) };
}

function createStepSeries(metrics: Metrics) {
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
      labels: model,
      buckets: eighths,
    }),
    rowSteps: metrics.counter({
      name: 'darkroom_row_steps_total',
      help: 'Steps of rows: a step of three rows counts three.',
      labels: model,
    }),
    modelRows: metrics.counter({
      name: 'darkroom_model_rows_total',
      help: "Rows of the model's batches: two for each row that guidance doubles.",
      labels: model,
    }),
    rows: metrics.gauge({ name: 'darkroom_engine_rows', help: 'Rows that are under way.', labels: model }),
    capacity: metrics.gauge({
      name: 'darkroom_engine_capacity_rows',
      help: 'Rows that can share a step.',
      labels: model,
    }),
  };
}

function createLossSeries(metrics: Metrics) {
  return {
    joined: metrics.counter({
      name: 'darkroom_rows_joined_total',
      help: 'Rows that took their first step here.',
      labels: model,
    }),
    left: metrics.counter({
      name: 'darkroom_rows_left_total',
      help: 'Rows that left: done, canceled, failed, engine_lost.',
      labels: ['model', 'reason'],
    }),
    leasesLost: metrics.counter({
      name: 'darkroom_leases_lost_total',
      help: 'Requests that were taken from this worker: buried (it was taken for dead), refused (a write was told so).',
      labels: ['model', 'reason'],
    }),
    enginesLost: metrics.counter({
      name: 'darkroom_engines_lost_total',
      help: 'Engine processes that died.',
      labels: model,
    }),
    mistakenDeaths: metrics.counter({
      name: 'darkroom_worker_mistaken_deaths_total',
      help: 'Times that this worker was buried alive, because its heartbeat came too late.',
      labels: model,
    }),
  };
}
