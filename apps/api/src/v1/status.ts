import { isoTime, type TerminalState } from '@darkroom/core';
import {
  countEnded,
  listDead,
  listShardsByModel,
  readLoadFailures,
  readStats,
  readTally,
  readTime,
  readWorkers,
  type StoreConnection,
  sumEnded,
  sumStats,
  sumTallies,
  type WorkerStatus,
} from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context.ts';
import { commonErrors, jsonAnswer, type Route } from '../http/api-route.ts';
import { noStore } from '../http/urls.ts';
import { createCached } from '../server/cached.ts';
import { count } from './api-schemas.ts';

const time = z.iso.datetime();

const workerStatusSchema = z
  .strictObject({
    id: z.string(),
    model: z.string(),
    state: z.enum(['loading', 'idle', 'busy', 'asleep', 'draining', 'silent']).openapi({
      description:
        '`asleep`: it has freed the memory of its model, and loads it for the next request, or is about to for those it has. `draining`: it gets no more requests. `silent`: no heartbeat, it counts as dead.',
    }),
    loaded: z.boolean().openapi({ description: 'It has its model in memory and is alive.' }),
    draining: z.boolean(),
    stopping: z.boolean().openapi({ description: 'It ends, and gives back what it has; else an operator drains it.' }),
    device: z.string().nullable(),
    host: z.string().nullable(),
    version: z.string().nullable(),
    changed_files: z.string().nullable().openapi({
      description:
        'Files of its model that were replaced since it was loaded: what was loaded is served until a reload.',
    }),
    rows: count.openapi({ description: 'Pictures that can share a step there.' }),
    free_rows: count,
    registered_at: time,
    last_heartbeat_at: time.openapi({ description: 'By the clock of Redis.' }),
    step_ms: z
      .strictObject({ fast: z.number(), slow: z.number() })
      .nullable()
      .openapi({ description: 'How long its last steps took: one in ten was faster, one in ten slower.' }),
  })
  .openapi('WorkerStatus');

const queueStatusSchema = z
  .strictObject({
    model: z.string(),
    paused: z.boolean().openapi({ description: 'By an operator: what is queued waits, what runs goes on.' }),
    queued: count,
    running: count,
    workers: count.openapi({
      description: 'Registered ones, also those beyond the hundred of a model that are listed.',
    }),
    oldest_age_s: z.number().min(0).nullable().openapi({ description: 'Of the oldest waiting request.' }),
    per_minute: z.strictObject({ finished: z.number().min(0), failed: z.number().min(0) }).openapi({
      description: 'Mean of the last five minutes; finished ones include those that were canceled.',
    }),
    ended: z
      .strictObject({ succeeded: count, failed: count, canceled: count, expired: count })
      .openapi({ description: 'Since this Redis began.' }),
    requeued: z
      .strictObject({ worker_lost: count, engine_failed: count, worker_stopped: count })
      .openapi({ description: 'Running requests that went back to the queue, since this Redis began.' }),
  })
  .openapi('QueueStatus');

export const statusSchema = z
  .strictObject({
    time,
    workers: z.array(workerStatusSchema),
    queues: z.array(queueStatusSchema),
    failures: z
      .array(z.strictObject({ model: z.string(), failed_at: time, reason: z.string() }))
      .openapi({ description: 'The last ones of each model, newest first.' }),
    failed_to_load: z
      .array(z.strictObject({ model: z.string(), host: z.string(), failed_at: time, reason: z.string() }))
      .openapi({
        description:
          'Models that a worker could not load in the last minute: such a worker is `loading`, or not registered.',
      }),
  })
  .openapi('Status');

export type Status = z.infer<typeof statusSchema>;

/** What `per_minute` is a mean of. */
const minutes = 5;
const failuresPerModel = 10;

/** More of a model's workers are counted, and not shown one by one. */
const shownWorkers = 100;

/** Read once a second at most, however often it is asked for. */
export function statusRoute({ askStore, clock }: ApiContext): Route {
  const status = createCached(clock, () => askStore(readStatus));
  return {
    method: 'get',
    path: '/status',
    summary: 'Workers, queues, rates and failures',
    description:
      'For operators and dashboards without Prometheus. Of the whole system, whoever asks; no request is named.',
    responses: { ...commonErrors, 200: jsonAnswer('As it is now.', statusSchema) },
    handle: async (c) => c.json(await status.get(), 200, noStore),
  };
}

async function readStatus(store: StoreConnection): Promise<Status> {
  const reads = [listShardsByModel(store), readLoadFailures(store), readTime(store)] as const;
  const [shards, loadFailures, nowMs] = await Promise.all(reads);
  const models = await Promise.all(
    [...shards.keys()].toSorted().map((model) => readModel(store, shards.get(model)!, nowMs)),
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
  const [stats, tallies, workers, failures, ended] = await Promise.all([
    ofAll((shard) => readStats(store, shard)),
    ofAll((shard) => readTally(store, shard)),
    ofAll((shard) => readWorkers(store, shard, shownWorkers)),
    ofAll((shard) => listDead(store, shard, failuresPerModel)),
    ofAll((shard) => countEnded(store, shard, { minutes, nowMs })),
  ]);
  return {
    stats: sumStats(stats),
    tally: sumTallies(tallies),
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

function queueView({ stats, tally, ended }: ModelStatus, nowMs: number): Status['queues'][number] {
  const { model, queued, running, oldestQueuedAtMs, workers } = stats;
  const finished = ended.succeeded + ended.canceled;
  const ends = tally.ends.map(({ state, counts }) => [state, counts.reduce((sum, count) => sum + count, 0)]);
  return {
    model,
    paused: stats.isPaused,
    queued,
    running,
    oldest_age_s: oldestQueuedAtMs === undefined ? null : Math.max(0, nowMs - oldestQueuedAtMs) / 1000,
    per_minute: { finished: finished / minutes, failed: ended.failed / minutes },
    workers: workers.loading + workers.idle + workers.busy + workers.asleep + workers.draining,
    ended: Object.fromEntries(ends) as Record<TerminalState, number>,
    requeued: tally.requeues,
  };
}

function textOf(value: string | number | undefined): string | null {
  return value === undefined ? null : String(value);
}
