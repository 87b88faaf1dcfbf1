/**
 * What the whole system looks like, for Prometheus: asked of Redis at every scrape, for all models at once. Every
 * janitor reports the same, so that one may be down: queries take `max`, never `sum`, over janitors.
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
  readTally,
  readTime,
  type StoreConnection,
  sumStats,
  sumTallies,
  type Tally,
} from '@darkroom/store';

export function reportQueues({ store, metrics }: { store: StoreConnection; metrics: Metrics }): void {
  const showGauges = createGauges(metrics);
  let seen = nothing;
  showDurations(metrics, () => seen.models);
  const showCounters = createCounters(metrics);
  metrics.addText(() => seen.bullmq);
  const show = (now: Seen): void => {
    seen = now;
    showGauges(now);
    showCounters(now);
  };
  metrics.onScrape({
    async refresh() {
      const now = await look(store);
      return () => show(now);
    },
    clear: () => show(nothing),
  });
}

interface Seen {
  models: readonly { stats: ModelStats; tally: Tally }[];
  memory: Readonly<Record<string, number>>;
  /** When, by the clock of Redis. */
  nowMs: number;
  /** Series that BullMQ has made itself. */
  bullmq: string;
}

/** Not known is not zero: shows nothing. */
const nothing: Seen = { models: [], memory: {}, nowMs: 0, bullmq: '' };

async function look(store: StoreConnection): Promise<Seen> {
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

async function readModel(store: StoreConnection, shards: readonly string[]): Promise<Seen['models'][number]> {
  const [stats, tallies] = await Promise.all([
    Promise.all(shards.map((shard) => readStats(store, shard))),
    Promise.all(shards.map((shard) => readTally(store, shard))),
  ]);
  return { stats: sumStats(stats), tally: sumTallies(tallies) };
}

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

function oldestAgeS({ oldestQueuedAtMs }: ModelStats, nowMs: number): number {
  return oldestQueuedAtMs === undefined ? 0 : Math.max(0, nowMs - oldestQueuedAtMs) / 1000;
}

function createGauges(metrics: Metrics): (seen: Seen) => void {
  const plain = plainGauges.map(([name, help, read]) => ({
    gauge: metrics.gauge({ name, help, labels: ['model'] }),
    read,
  }));
  const workers = metrics.gauge({
    name: 'darkroom_workers',
    help: 'Workers by state: loading, idle, busy, asleep, draining (stopping), silent (no heartbeat, to be buried).',
    labels: ['model', 'state'],
  });
  const redis = metrics.gauge({
    name: 'darkroom_redis_memory_bytes',
    help: 'Memory of Redis by its own account: used, and max, the most it may use; 0 is no limit.',
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

/** What became of requests: counted in Redis where it happens, shown here. */
function showDurations(metrics: Metrics, read: () => Seen['models']): void {
  const show = (name: string, help: string, labels: string[], seriesOf: (tally: Tally, model: string) => Series[]) =>
    metrics.storedHistogram({ name, help, labels: ['model', ...labels] }, () =>
      read().flatMap(({ stats, tally }) => seriesOf(tally, stats.model)),
    );
  show(
    'darkroom_state_seconds',
    'How long requests were in a state before they went on to the next; its count is that of the transitions.',
    ['state', 'next'],
    ({ states }, model) =>
      states.map(({ state, next, ...durations }) => ({ labels: { model, state, next }, ...durations })),
  );
  show(
    'darkroom_request_seconds',
    'From the admission of a request to its end; its count is that of the requests that ended so.',
    ['outcome'],
    ({ ends }, model) => ends.map(({ state, ...durations }) => ({ labels: { model, outcome: state }, ...durations })),
  );
}

function createCounters(metrics: Metrics): (seen: Seen) => void {
  const requeues = metrics.counter({
    name: 'darkroom_requeues_total',
    help: 'Running requests that went back to the queue: worker_lost, engine_failed (both count as attempts, unless it got further than ever), worker_stopped.',
    labels: ['model', 'reason'],
  });
  const buried = metrics.counter({
    name: 'darkroom_workers_buried_total',
    help: 'Workers that were taken for dead because their heartbeat stopped.',
    labels: ['model'],
  });
  return ({ models }) => {
    requeues.reset();
    buried.reset();
    for (const { stats, tally } of models) {
      const { model } = stats;
      for (const [reason, count] of Object.entries(tally.requeues)) requeues.inc({ model, reason }, count);
      buried.inc({ model }, tally.buried);
    }
  };
}

/** Shows what the last sweep for leaks has seen of the models' keys. */
export function createKeySizeReport(metrics: Metrics): (sizes: readonly KeySize[]) => void {
  const labels = ['model', 'kind'] as const;
  const bytes = metrics.gauge({
    name: 'darkroom_redis_bytes',
    help: 'What keys of a kind take in Redis, estimated from 20 of each at the last sweep for leaks.',
    labels,
  });
  const keys = metrics.gauge({
    name: 'darkroom_redis_keys',
    help: 'Keys of a kind, counted at the last sweep for leaks.',
    labels,
  });
  return (sizes) => {
    for (const { model, kind, ...size } of sizes) {
      bytes.set({ model, kind }, size.bytes);
      keys.set({ model, kind }, size.keys);
    }
  };
}
