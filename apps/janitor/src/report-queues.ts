/**
 * Reports the state of all models to Prometheus, read from Redis at every scrape. Every janitor reports the same, so
 * that one may be down: queries take `max`, never `sum`, over janitors.
 */
import type { HistogramSeries as Series, Metrics } from '@darkroom/service';
import {
  exportBullmqMetrics,
  isStoreReachable,
  type KeySize,
  listShardsByModel,
  type ModelStats,
  readRedisMemory,
  readStats,
  readCounters,
  readTime,
  type StoreConnection,
  sumStats,
  sumCounters,
  type QueueCounters,
} from '@darkroom/store';

export function reportQueues({ store, metrics }: { store: StoreConnection; metrics: Metrics }): void {
  const showGauges = createGauges(metrics);
  let seen = unknownState;
  showDurations(metrics, () => seen.models);
  const showCounters = createCounters(metrics);
  metrics.addText(() => seen.bullmq);
  const show = (now: SystemState): void => {
    seen = now;
    showGauges(now);
    showCounters(now);
  };
  metrics.onScrape({
    async refresh() {
      const now = await readState(store);
      return () => show(now);
    },
    clear: () => show(unknownState),
  });
}

interface SystemState {
  models: readonly { stats: ModelStats; counters: QueueCounters }[];
  memory: Readonly<Record<string, number>>;
  /** Redis time. */
  nowMs: number;
  /** Metrics exported by BullMQ. */
  bullmq: string;
}

/** Shown when Redis does not answer: unknown is not zero, so no series at all. */
const unknownState: SystemState = { models: [], memory: {}, nowMs: 0, bullmq: '' };

async function readState(store: StoreConnection): Promise<SystemState> {
  if (!(await isStoreReachable(store))) throw new Error('Redis does not answer');
  const shards = [...(await listShardsByModel(store)).values()];
  const [models, memory, nowMs, bullmq] = await Promise.all([
    Promise.all(shards.map((own) => readModel(store, own))),
    readRedisMemory(store),
    readTime(store),
    exportBullmqMetrics(store, { app: 'janitor' }),
  ]);
  return { models, memory, nowMs, bullmq };
}

async function readModel(store: StoreConnection, shards: readonly string[]): Promise<SystemState['models'][number]> {
  const [stats, counterLists] = await Promise.all([
    Promise.all(shards.map((shard) => readStats(store, shard))),
    Promise.all(shards.map((shard) => readCounters(store, shard))),
  ]);
  return { stats: sumStats(stats), counters: sumCounters(counterLists) };
}

/** Gauges with one value per model. */
const plainGauges = [
  ['darkroom_queue_requests', 'Queued requests.', ({ queued }) => queued],
  ['darkroom_queue_oldest_seconds', 'Age of the oldest queued request since its admission.', oldestAgeS],
  ['darkroom_queue_owners', 'Owners (names of API keys) with queued requests.', ({ waitingOwners }) => waitingOwners],
  ['darkroom_running_requests', 'Requests leased to workers.', ({ running }) => running],
  ['darkroom_worker_rows', 'Slots of idle and busy workers.', ({ slots }) => slots],
  ['darkroom_worker_free_rows', 'Free slots of idle and busy workers.', ({ freeSlots }) => freeSlots],
  ['darkroom_webhook_outbox_entries', 'Events in the webhook outbox.', ({ outbox }) => outbox],
  ['darkroom_model_paused', '1 when an operator has paused the model.', ({ isPaused }) => (isPaused ? 1 : 0)],
] satisfies [name: string, help: string, read: (stats: ModelStats, nowMs: number) => number][];

function oldestAgeS({ oldestQueuedAtMs }: ModelStats, nowMs: number): number {
  return oldestQueuedAtMs === undefined ? 0 : Math.max(0, nowMs - oldestQueuedAtMs) / 1000;
}

function createGauges(metrics: Metrics): (seen: SystemState) => void {
  const plain = plainGauges.map(([name, help, read]) => ({
    gauge: metrics.gauge({ name, help, labels: ['model'] }),
    read,
  }));
  const workers = metrics.gauge({
    name: 'darkroom_workers',
    help: 'Workers by state: loading, idle, busy, asleep, draining (stopping), silent (no heartbeat, about to be reaped).',
    labels: ['model', 'state'],
  });
  const redis = metrics.gauge({
    name: 'darkroom_redis_memory_bytes',
    help: 'Memory reported by Redis: used, and max (maxmemory; 0 means no limit).',
    labels: ['what'],
  });
  return ({ models, memory, nowMs }) => {
    for (const gauge of [...plain.map((each) => each.gauge), workers, redis]) gauge.reset();
    for (const { stats } of models) {
      const { model } = stats;
      for (const { gauge, read } of plain) gauge.set({ model }, read(stats, nowMs));
      for (const [state, count] of Object.entries(stats.workers)) workers.set({ model, state }, count);
    }
    for (const [what, bytes] of Object.entries(memory)) redis.set({ what }, bytes);
  };
}

/** Exports the durations that are counted in Redis when requests change state. */
function showDurations(metrics: Metrics, read: () => SystemState['models']): void {
  const show = (
    name: string,
    help: string,
    labels: string[],
    seriesOf: (counters: QueueCounters, model: string) => Series[],
  ) =>
    metrics.storedHistogram({ name, help, labels: ['model', ...labels] }, () =>
      read().flatMap(({ stats, counters }) => seriesOf(counters, stats.model)),
    );
  show(
    'darkroom_state_seconds',
    'Time that requests spent in a state before the next one; the count is the number of transitions.',
    ['state', 'next'],
    ({ states }, model) =>
      states.map(({ state, next, ...durations }) => ({ labels: { model, state, next }, ...durations })),
  );
  show(
    'darkroom_request_seconds',
    'Time from the admission of a request to its end; the count is the number of ended requests.',
    ['outcome'],
    ({ ends }, model) => ends.map(({ state, ...durations }) => ({ labels: { model, outcome: state }, ...durations })),
  );
}

function createCounters(metrics: Metrics): (seen: SystemState) => void {
  const requeues = metrics.counter({
    name: 'darkroom_requeues_total',
    help: 'Requeued requests, by reason: worker_lost, engine_failed (both count as attempts unless the request made progress), worker_stopped.',
    labels: ['model', 'reason'],
  });
  const reaped = metrics.counter({
    name: 'darkroom_workers_reaped_total',
    help: 'Workers that were reaped because their heartbeat stopped.',
    labels: ['model'],
  });
  return ({ models }) => {
    requeues.reset();
    reaped.reset();
    for (const { stats, counters } of models) {
      const { model } = stats;
      for (const [reason, count] of Object.entries(counters.requeues)) requeues.inc({ model, reason }, count);
      reaped.inc({ model }, counters.reaped);
    }
  };
}

/** Creates the report of key sizes, as measured by the last complete leak sweep. */
export function createKeySizeReport(metrics: Metrics): (sizes: readonly KeySize[]) => void {
  const labels = ['model', 'kind'] as const;
  const bytes = metrics.gauge({
    name: 'darkroom_redis_bytes',
    help: 'Redis memory of keys by kind, estimated from 20 of each at the last leak sweep.',
    labels,
  });
  const keys = metrics.gauge({
    name: 'darkroom_redis_keys',
    help: 'Redis keys by kind, counted at the last leak sweep.',
    labels,
  });
  return (sizes) => {
    for (const { model, kind, ...size } of sizes) {
      bytes.set({ model, kind }, size.bytes);
      keys.set({ model, kind }, size.keys);
    }
  };
}
