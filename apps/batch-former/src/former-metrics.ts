import type { Counter, Gauge, Histogram, Metrics } from '@darkroom/service';

/** What formers count, over all models. */
export interface FormerMetrics {
  leases: Counter<'model' | 'outcome'>;
  together: Histogram<'model'>;
  held: Gauge<'model'>;
  locksLost: Counter<'model'>;
}

export function createFormerMetrics(metrics: Metrics): FormerMetrics {
  return {
    leases: metrics.counter({
      name: 'darkroom_leases_total',
      help: 'What was asked for a worker and came of it: leased, waiting (no free row), alone (its last attempt), lost, ended, exhausted.',
      labels: ['model', 'outcome'],
    }),
    together: metrics.histogram({
      name: 'darkroom_lease_requests',
      help: 'Requests that were leased to a worker together.',
      labels: ['model'],
      buckets: [1, 2, 3, 4, 6, 8, 12, 16, 32],
    }),
    held: metrics.gauge({
      name: 'darkroom_held_requests',
      help: 'Requests taken out of the queue and not leased yet.',
      labels: ['model'],
    }),
    locksLost: metrics.counter({
      name: 'darkroom_held_locks_lost_total',
      help: 'Held requests whose lock was lost: this former was too slow to renew it.',
      labels: ['model'],
    }),
  };
}
