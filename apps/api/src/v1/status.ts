import { isoTime, type TerminalState, valueOfKey } from '@darkroom/core';
import {
  countEnded,
  listDead,
  listShardsByModel,
  readLoadFailures,
  readStats,
  readCounters,
  readTime,
  readWorkers,
  type StoreConnection,
  sumEnded,
  sumStats,
  sumCounters,
  type WorkerStatus,
} from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context/context.ts';
import { commonErrors, jsonAnswer, type Route } from '../openapi/api-route.ts';
import { noStore } from '../http/public-url.ts';
import { createCached } from '../server/cached.ts';
import { count } from '../openapi/api-schemas.ts';

const time = z.iso.datetime();

const workerStatusSchema = z
  .strictObject({
    id: z.string(),
    model: z.string(),
    state: z.enum(['loading', 'idle', 'busy', 'asleep', 'draining', 'silent']).openapi({
      description:
        '`asleep`: it has freed the memory of its model, and loads it for the next request, or is about to. `draining`: it gets no new requests. `silent`: no heartbeat; it counts as dead.',
    }),
    loaded: z.boolean().openapi({ description: 'True if it is alive and has its model in memory.' }),
    draining: z.boolean(),
    stopping: z.boolean().openapi({
      description:
        'True if it drains because it is stopping, and requeues its requests; false if an operator drains it.',
    }),
    device: z.string().nullable(),
    host: z.string().nullable(),
    version: z.string().nullable(),
    changed_files: z.string().nullable().openapi({
      description:
        'Files of its model that were replaced since it was loaded: the loaded version is served until a restart.',
    }),
    rows: count.openapi({ description: 'Slots: rows that can share a step.' }),
    free_rows: count,
    registered_at: time,
    last_heartbeat_at: time.openapi({ description: 'By the clock of Redis.' }),
    step_ms: z
      .strictObject({ fast: z.number(), slow: z.number() })
      .nullable()
      .openapi({ description: 'Duration of its last steps: the 10th and 90th percentile.' }),
  })
  .openapi('WorkerStatus');

const queueStatusSchema = z
  .strictObject({
    model: z.string(),
    paused: z
      .boolean()
      .openapi({ description: 'True if an operator has paused it: queued requests wait, running ones continue.' }),
    queued: count,
    running: count,
    workers: count.openapi({
      description: 'Registered workers, including those beyond the hundred per model that are listed.',
    }),
    oldest_age_s: z.number().min(0).nullable().openapi({ description: 'Age of the oldest waiting request.' }),
    per_minute: z.strictObject({ finished: z.number().min(0), failed: z.number().min(0) }).openapi({
      description: 'Mean of the last five minutes; `finished` includes canceled requests.',
    }),
    ended: z
      .strictObject({ succeeded: count, failed: count, canceled: count, expired: count })
      .openapi({ description: 'Ended requests since the Redis data was created.' }),
    requeued: z
      .strictObject({ worker_lost: count, engine_failed: count, worker_stopped: count })
      .openapi({ description: 'Running requests that were requeued since the Redis data was created.' }),
  })
  .openapi('QueueStatus');

export const statusSchema = z
  .strictObject({
    time,
    workers: z.array(workerStatusSchema),
    queues: z.array(queueStatusSchema),
    failures: z
      .array(z.strictObject({ model: z.string(), failed_at: time, reason: z.string() }))
      .openapi({ description: 'The last failures of each model, newest first.' }),
    failed_to_load: z
      .array(z.strictObject({ model: z.string(), host: z.string(), failed_at: time, reason: z.string() }))
      .openapi({
        description:
          'Models that a worker failed to load in the last minute: such a worker is `loading`, or not registered.',
      }),
    refused_files: z
      .array(z.strictObject({ model: z.string(), file: z.string(), reason: z.string() }))
      .openapi({ description: 'Files that a model is served without, such as adapters that do not fit it.' }),
  })
  .openapi('Status');

export type Status = z.infer<typeof statusSchema>;

/** Window of the means in `per_minute`. */
const minutes = 5;
const failuresPerModel = 10;

/** Maximum listed workers per model; all are counted. */
const shownWorkers = 100;

/** Returns the status route. It reads Redis at most once a second. */
export function statusRoute({ withStore, clock, models }: ApiContext): Route {
  const status = createCached(clock, async () => {
    const [read, cards] = await Promise.all([withStore(readStatus), models.get()]);
    const refused = cards.flatMap(({ id, refusedFiles = [] }) =>
      refusedFiles.map(({ file, reason }) => ({ model: id, file, reason })),
    );
    return { ...read, refused_files: refused };
  });
  return {
    method: 'get',
    path: '/status',
    operationId: 'getStatus',
    tag: 'Health',
    summary: 'Get the state of workers and queues',
    description:
      'For operators and dashboards without Prometheus. Covers the full system for every owner; shows no request ids.',
    responses: { ...commonErrors, 200: jsonAnswer('The current state.', statusSchema) },
    handle: async (c) => c.json(await status.get(), 200, noStore),
  };
}

async function readStatus(store: StoreConnection): Promise<Omit<Status, 'refused_files'>> {
  const reads = [listShardsByModel(store), readLoadFailures(store), readTime(store)] as const;
  const [shards, loadFailures, nowMs] = await Promise.all(reads);
  const models = await Promise.all(
    [...shards.keys()].toSorted().map((model) => readModel(store, valueOfKey(shards, model), nowMs)),
  );
  return {
    time: isoTime(nowMs),
    workers: models.flatMap(({ workers }) => workers.map(workerView)),
    queues: models.map((model) => queueView(model, nowMs)),
    failures: models
      .flatMap(({ failures }) => failures)
      .toSorted((left, right) => right.failedAtMs - left.failedAtMs)
      .map(({ model, failedAtMs, reason }) => ({ model, failed_at: isoTime(failedAtMs), reason })),
    failed_to_load: loadFailures.map(({ model, host, reason, failedAtMs }) => ({
      model,
      host,
      failed_at: isoTime(failedAtMs),
      reason,
    })),
  };
}

type ModelStatus = Awaited<ReturnType<typeof readModel>>;

async function readModel(store: StoreConnection, shards: readonly string[], nowMs: number) {
  const ofAll = <Value>(read: (shard: string) => Promise<Value>) => Promise.all(shards.map(read));
  const [stats, counterLists, workers, failures, ended] = await Promise.all([
    ofAll((shard) => readStats(store, shard)),
    ofAll((shard) => readCounters(store, shard)),
    ofAll((shard) => readWorkers(store, shard, shownWorkers)),
    ofAll((shard) => listDead(store, shard, failuresPerModel)),
    ofAll((shard) => countEnded(store, shard, { minutes, nowMs })),
  ]);
  return {
    stats: sumStats(stats),
    counters: sumCounters(counterLists),
    workers: workers.flat().slice(0, shownWorkers),
    failures: failures
      .flat()
      .toSorted((left, right) => right.failedAtMs - left.failedAtMs)
      .slice(0, failuresPerModel),
    ended: sumEnded(ended),
  };
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
    changed_files: textOf(info['changedFiles']),
    rows: worker.capacity,
    free_rows: worker.freeSlots,
    registered_at: isoTime(worker.registeredAtMs),
    last_heartbeat_at: isoTime(worker.heartbeatAtMs),
    step_ms: pace === undefined ? null : { fast: pace.stepMs.fast, slow: pace.stepMs.slow },
  };
}

function queueView({ stats, counters, ended }: ModelStatus, nowMs: number): Status['queues'][number] {
  const { model, queued, running, oldestQueuedAtMs, workers } = stats;
  const finished = ended.succeeded + ended.canceled;
  const ends = counters.ends.map(({ state, counts }) => [state, counts.reduce((sum, count) => sum + count, 0)]);
  return {
    model,
    paused: stats.isPaused,
    queued,
    running,
    oldest_age_s: oldestQueuedAtMs === undefined ? null : Math.max(0, nowMs - oldestQueuedAtMs) / 1000,
    per_minute: { finished: finished / minutes, failed: ended.failed / minutes },
    workers: workers.loading + workers.idle + workers.busy + workers.asleep + workers.draining,
    ended: Object.fromEntries(ends) as Record<TerminalState, number>,
    requeued: counters.requeues,
  };
}

function textOf(value: string | number | undefined): string | null {
  return value === undefined ? null : String(value);
}
