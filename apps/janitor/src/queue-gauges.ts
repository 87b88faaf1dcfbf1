import type { Metrics } from '@darkroom/service';
import type { ModelStats, RedisMemory } from '@darkroom/store';

/** One value for each model. */
const plainGauges = [
  ['darkroom_queue_requests', 'Requests that wait.', ({ queued }) => queued],
  ['darkroom_queue_oldest_seconds', 'How long ago the oldest waiting request was admitted.', oldestAgeS],
  ['darkroom_queue_owners', 'Owners (names of API keys) with waiting requests.', ({ waitingOwners }) => waitingOwners],
  ['darkroom_running_requests', 'Requests that workers have.', ({ running }) => running],
  ['darkroom_worker_rows', 'Rows that idle and busy workers can step at once.', ({ slots }) => slots],
  ['darkroom_worker_free_rows', 'Those of them that nobody has taken.', ({ freeSlots }) => freeSlots],
  ['darkroom_webhook_outbox_entries', 'Events that no webhook-sender has taken on.', ({ outbox }) => outbox],
  ['darkroom_model_paused', '1 when an operator has paused the model.', ({ isPaused }) => (isPaused ? 1 : 0)],
] satisfies [name: string, help: string, read: (stats: ModelStats, nowMs: number) => number][];

/** How the models' queues and workers are right now, and Redis. */
export function createQueueGauges(metrics: Metrics) {
  const plain = plainGauges.map(([name, help, read]) => ({
    gauge: metrics.gauge({ name, help, labels: ['model'] }),
    read,
  }));
  const workers = metrics.gauge({
    name: 'darkroom_workers',
    help: 'Workers by state: loading, idle, busy, draining (stopping), silent (no heartbeat, to be buried).',
    labels: ['model', 'state'],
  });
  const redis = metrics.gauge({
    name: 'darkroom_redis_memory_bytes',
    help: 'Memory of Redis by its own account: used, and max, the most it may use; 0 is no limit.',
    labels: ['what'],
  });
  const clear = (): void => {
    for (const { gauge } of plain) gauge.reset();
    workers.reset();
    redis.reset();
  };
  return {
    /** Shows nothing: not known is not zero. */
    clear,
    set(models: readonly ModelStats[], { usedBytes, maxBytes }: RedisMemory, nowMs: number): void {
      clear();
      for (const stats of models) {
        const { model } = stats;
        for (const { gauge, read } of plain) gauge.set({ model }, read(stats, nowMs));
        for (const [state, count] of Object.entries(stats.workers)) workers.set({ model, state }, count);
      }
      redis.set({ what: 'used' }, usedBytes);
      redis.set({ what: 'max' }, maxBytes);
    },
  };
}

function oldestAgeS({ oldestQueuedAtMs }: ModelStats, nowMs: number): number {
  return oldestQueuedAtMs === undefined ? 0 : Math.max(0, nowMs - oldestQueuedAtMs) / 1000;
}
