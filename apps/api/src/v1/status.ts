import { type Clock, isoTime } from '@darkroom/core';
import {
  countFinished,
  type FailedRequest,
  listFailed,
  listModelIds,
  type LoadFailure,
  type ModelStats,
  readLoadFailures,
  readStats,
  readWorkers,
  type StoreConnection,
  type WorkerStatus,
} from '@darkroom/store';
import { addRoute, type Api, commonErrors } from '../http/api-route.ts';
import type { AskStore } from '../server/store-guard.ts';
import { type Status, statusSchema } from './status-schema.ts';

/** What `per_minute` is a mean of. */
const minutes = 5;
const failuresPerModel = 10;

export function addStatusRoute(api: Api, { askStore, clock }: { askStore: AskStore; clock: Clock }): void {
  addRoute(api, statusRoute, async (c) => {
    const nowMs = clock.now();
    const [models, loadFailures] = await askStore((store) =>
      Promise.all([
        listModelIds(store).then((ids) => Promise.all(ids.toSorted().map((model) => readModel(store, model, nowMs)))),
        readLoadFailures(store),
      ]),
    );
    const status: Status = {
      time: isoTime(nowMs),
      workers: models.flatMap(({ workers }) => workers.map(workerView)),
      queues: models.map((model) => queueView(model, nowMs)),
      failures: models
        .flatMap(({ failures }) => failures)
        .toSorted((left, right) => right.failedAtMs - left.failedAtMs)
        .map(({ model, failedAtMs, reason }) => ({ model, failed_at: isoTime(failedAtMs), reason })),
      failed_to_load: loadFailures.map(loadFailureView),
    };
    return c.json(status, 200, { 'Cache-Control': 'no-store' });
  });
}

interface ModelStatus {
  stats: ModelStats;
  workers: readonly WorkerStatus[];
  failures: readonly FailedRequest[];
  completed: number;
  failed: number;
}

async function readModel(store: StoreConnection, model: string, nowMs: number): Promise<ModelStatus> {
  const [stats, workers, failures, completed, failed] = await Promise.all([
    readStats(store, model),
    readWorkers(store, model),
    listFailed(store, model, failuresPerModel),
    countFinished(store, model, { kind: 'completed', minutes, nowMs }),
    countFinished(store, model, { kind: 'failed', minutes, nowMs }),
  ]);
  return { stats, workers, failures, completed, failed };
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
    free_rows: worker.freeRows,
    registered_at: isoTime(worker.registeredAtMs),
    last_heartbeat_at: isoTime(worker.heartbeatAtMs),
    step_ms: pace === undefined ? null : { fast: pace.stepMs.fast, slow: pace.stepMs.slow },
  };
}

function loadFailureView({ model, host, reason, failedAtMs }: LoadFailure): Status['failed_to_load'][number] {
  return { model, host, failed_at: isoTime(failedAtMs), reason };
}

function queueView({ stats, completed, failed }: ModelStatus, nowMs: number): Status['queues'][number] {
  const { model, queued, running, oldestQueuedAtMs, tally } = stats;
  const endedAs = (wanted: string): number =>
    tally.ends.find(({ state }) => state === wanted)?.counts.reduce((sum, count) => sum + count, 0) ?? 0;
  return {
    model,
    paused: stats.isPaused,
    queued,
    running,
    oldest_age_s: oldestQueuedAtMs === undefined ? null : Math.max(0, nowMs - oldestQueuedAtMs) / 1000,
    per_minute: { finished: completed / minutes, failed: failed / minutes },
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
