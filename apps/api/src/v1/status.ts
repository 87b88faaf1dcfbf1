import { type Clock, isoTime, type TerminalState } from '@darkroom/core';
import {
  countEnded,
  type DeadRequest,
  listDead,
  listModelIds,
  type LoadFailure,
  type ModelStats,
  readLoadFailures,
  readStats,
  readTally,
  readTime,
  readWorkers,
  type StoreConnection,
  type Tally,
  type WorkerStatus,
} from '@darkroom/store';
import { addRoute, type Api, commonErrors } from '../http/api-route.ts';
import { createCached } from '../server/cached.ts';
import type { AskStore } from '../server/store-guard.ts';
import { type Status, statusSchema } from './status-schema.ts';

/** What `per_minute` is a mean of. */
const minutes = 5;
const failuresPerModel = 10;

/** More of a model's workers are counted, and not shown one by one. */
const shownWorkers = 100;
const maxAgeMs = 1000;

/** Read once a second at most, however often it is asked for. */
export function addStatusRoute(api: Api, { askStore, clock }: { askStore: AskStore; clock: Clock }): void {
  const status = createCached({ load: () => askStore(readStatus), maxAgeMs, clock });
  addRoute(api, statusRoute, async (c) => c.json(await status.get(), 200, { 'Cache-Control': 'no-store' }));
}

async function readStatus(store: StoreConnection): Promise<Status> {
  const reads = [listModelIds(store), readLoadFailures(store), readTime(store)] as const;
  const [ids, loadFailures, nowMs] = await Promise.all(reads);
  const models = await Promise.all(ids.toSorted().map((model) => readModel(store, model, nowMs)));
  return {
    time: isoTime(nowMs),
    workers: models.flatMap(({ workers }) => workers.map(workerView)),
    queues: models.map((model) => queueView(model, nowMs)),
    failures: models
      .flatMap(({ failures }) => failures)
      .toSorted((left, right) => right.failedAtMs - left.failedAtMs)
      .map(({ model, failedAtMs, reason }) => ({ model, failed_at: isoTime(failedAtMs), reason })),
    failed_to_load: loadFailures.map(loadFailureView),
  };
}

interface ModelStatus {
  stats: ModelStats;
  tally: Tally;
  workers: readonly WorkerStatus[];
  failures: readonly DeadRequest[];
  ended: Readonly<Record<TerminalState, number>>;
}

async function readModel(store: StoreConnection, model: string, nowMs: number): Promise<ModelStatus> {
  const [stats, tally, workers, failures, ended] = await Promise.all([
    readStats(store, model),
    readTally(store, model),
    readWorkers(store, model, shownWorkers),
    listDead(store, model, failuresPerModel),
    countEnded(store, model, { minutes, nowMs }),
  ]);
  return { stats, tally, workers, failures, ended };
}

function workerView({ workerId, model, state, info, pace, ...worker }: WorkerStatus): Status['workers'][number] {
  return {
    id: workerId,
    model,
    state,
    loaded: worker.isLoaded,
    draining: state === 'draining',
    stopping: worker.isStopping,
    device: textOf(info['device']),
    host: textOf(info['host']),
    version: textOf(info['version']),
    rows: worker.capacity,
    free_rows: worker.freeSlots,
    registered_at: isoTime(worker.registeredAtMs),
    last_heartbeat_at: isoTime(worker.heartbeatAtMs),
    step_ms: pace === undefined ? null : { fast: pace.stepMs.fast, slow: pace.stepMs.slow },
  };
}

function loadFailureView({ model, host, reason, failedAtMs }: LoadFailure): Status['failed_to_load'][number] {
  return { model, host, failed_at: isoTime(failedAtMs), reason };
}

function queueView({ stats, tally, ended }: ModelStatus, nowMs: number): Status['queues'][number] {
  const { model, queued, running, oldestQueuedAtMs, workers } = stats;
  const finished = ended.succeeded + ended.canceled;
  const endedAs = (wanted: string): number =>
    tally.ends.find(({ state }) => state === wanted)?.counts.reduce((sum, count) => sum + count, 0) ?? 0;
  return {
    model,
    paused: stats.isPaused,
    queued,
    running,
    oldest_age_s: oldestQueuedAtMs === undefined ? null : Math.max(0, nowMs - oldestQueuedAtMs) / 1000,
    per_minute: { finished: finished / minutes, failed: ended.failed / minutes },
    workers: workers.loading + workers.idle + workers.busy + workers.draining,
    ended: {
      succeeded: endedAs('succeeded'),
      failed: endedAs('failed'),
      canceled: endedAs('canceled'),
      expired: endedAs('expired'),
    },
    requeued: { ...tally.requeues },
  };
}

function textOf(value: string | number | undefined): string | null {
  return value === undefined ? null : String(value);
}

const statusRoute = {
  method: 'get' as const,
  path: '/status',
  summary: 'Workers, queues, rates and failures',
  description:
    'For operators and dashboards without Prometheus. Of the whole system, whoever asks; no request is named.',
  responses: {
    ...commonErrors,
    200: { description: 'As it is now.', content: { 'application/json': { schema: statusSchema } } },
  },
};
