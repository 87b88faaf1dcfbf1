import type { Metrics } from '@darkroom/service';

/** What formers count, over all models. */
export type FormerMetrics = ReturnType<typeof createFormerMetrics>;

export function createFormerMetrics(metrics: Metrics) {
  return {
    leases: metrics.counter({
      name: 'darkroom_leases_total',
      help: 'What became of requests that were to go to a worker: leased, waiting (no room by then), moved (another former was faster), expired.',
      labels: ['model', 'outcome'],
    }),
    together: metrics.histogram({
      name: 'darkroom_lease_requests',
      help: 'Requests that were leased to a worker together.',
      labels: ['model'],
      buckets: [1, 2, 3, 4, 6, 8, 12, 16, 32],
    }),
  };
}
