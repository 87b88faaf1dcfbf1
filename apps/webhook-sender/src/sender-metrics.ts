import { durationBuckets, type Metrics } from '@darkroom/service';

/** `failed` attempts are retried, `gave_up` are not; `postponed` deliveries were not attempted. */
export type AttemptOutcome = 'delivered' | 'failed' | 'gave_up' | 'postponed';

export type SenderMetrics = ReturnType<typeof createSenderMetrics>;

export function createSenderMetrics(metrics: Metrics) {
  const attempts = metrics.histogram({
    name: 'darkroom_webhook_attempt_seconds',
    help: 'Duration of delivery attempts by outcome: delivered, failed (will be retried), gave_up, postponed (not attempted).',
    labels: ['outcome'] as const,
    buckets: durationBuckets,
  });
  for (const outcome of ['delivered', 'failed', 'gave_up', 'postponed'] as const) attempts.zero({ outcome });
  const moved = metrics.counter({
    name: 'darkroom_webhook_events_total',
    help: 'Events moved from the outbox to the delivery queue.',
  });
  return { attempts, moved };
}
