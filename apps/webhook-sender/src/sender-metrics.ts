import { durationBuckets, type Metrics } from '@darkroom/service';

/** `failed` ones are tried again, `gave_up` ones are not; `postponed` ones were not tried. */
export type AttemptOutcome = 'delivered' | 'failed' | 'gave_up' | 'postponed';

export type SenderMetrics = ReturnType<typeof createSenderMetrics>;

export function createSenderMetrics(metrics: Metrics) {
  const attempts = metrics.histogram({
    name: 'darkroom_webhook_attempt_seconds',
    help: 'How long attempts at a delivery took: delivered, failed (to be tried again), gave_up, postponed (not tried).',
    labels: ['outcome'] as const,
    buckets: durationBuckets,
  });
  for (const outcome of ['delivered', 'failed', 'gave_up', 'postponed'] as const) attempts.zero({ outcome });
  const moved = metrics.counter({
    name: 'darkroom_webhook_events_total',
    help: 'Events that were moved from the outbox to the queue of deliveries.',
  });
  return { attempts, moved };
}
