/** One process's connection to Redis: commands, the BullMQ queues of the models it touches, and the settings that every write needs. */
import { BullMQOtel } from 'bullmq-otel';
import { Queue, type QueueOptions, type WorkerOptions } from 'bullmq';
import { Cluster, type Redis } from 'ioredis';
import { type ConnectionPoolOptions, createConnectionPool } from './connection-pool.ts';
import { modelKeys, type ModelKeys, queueName } from './keys.ts';
import type { RedisClient } from './open-redis.ts';
import { defineScripts } from './scripts.ts';

export interface ConnectStoreOptions extends ConnectionPoolOptions {
  /** What all keys begin with. */
  prefix?: string;
  /** How long results can be fetched after the end, ms. */
  resultTtlMs?: number;
  /** How much longer an id is answered with "gone" instead of "unknown", ms. */
  goneTtlMs?: number;
  /** Whether BullMQ makes spans of what is done to jobs, and keeps with a job the trace that it belongs to. */
  isTraced?: boolean;
}

export interface StoreConnection {
  readonly redis: RedisClient;
  readonly prefix: string;
  readonly resultTtlMs: number;
  readonly goneTtlMs: number;
  keysOf(model: string): ModelKeys;
  /** The queue of a model, or with `webhooksTag` that of deliveries. */
  queueOf(model: string): Queue;
  /** Another connection with the same settings: subscribers and blocking reads need their own. */
  duplicate(): RedisClient;
  /** Every server that holds keys, for what has to be asked of each: one, or a Cluster's masters. */
  masters(): readonly Redis[];
  /** `close` was called. */
  readonly isClosed: boolean;
  close(): Promise<void>;
}

const defaultResultTtlMs = 3_600_000;
const defaultGoneTtlMs = 86_400_000;
/** Finished jobs leave BullMQ at once (our request hash is the record); failed ones stay to be found. */
const failedJobs = { age: 7 * 86_400, count: 1000 };
/** BullMQ counts what it finished, and keeps the counts of so many minutes for dashboards. */
export const finishedCounts = { maxDataPoints: 120 };
/** BullMQ's own event stream serves dashboards only. */
const queueEventsLength = 1000;

/** Connects lazily: the first command waits for the connection. */
export function connectStore({
  prefix = 'darkroom',
  resultTtlMs = defaultResultTtlMs,
  goneTtlMs = defaultGoneTtlMs,
  isTraced = false,
  onError = () => {},
  ...pool
}: ConnectStoreOptions): StoreConnection {
  const connections = createConnectionPool({ ...pool, onError });
  let isClosed = false;
  const redis = connections.open();
  defineScripts(redis);
  const queues = createQueues(redis, prefix, { isTraced, onError });

  return {
    redis,
    prefix,
    resultTtlMs,
    goneTtlMs,
    keysOf: (model) => modelKeys(prefix, model),
    queueOf: queues.of,
    duplicate: () => connections.open(),
    masters: () => (redis instanceof Cluster ? redis.nodes('master') : [redis]),
    get isClosed() {
      return isClosed;
    },
    async close() {
      isClosed = true;
      await queues.close();
      connections.close();
    },
  };
}

/** The queues of a connection, opened when first asked for. */
function createQueues(
  connection: RedisClient,
  prefix: string,
  { isTraced, onError }: { isTraced: boolean; onError: (error: Error) => void },
): { of: (model: string) => Queue; close: () => Promise<void> } {
  const queues = new Map<string, Queue>();
  const telemetry = isTraced ? { telemetry: new BullMQOtel({ tracerName: 'bullmq' }) } : {};
  return {
    of(model) {
      const known = queues.get(model);
      if (known !== undefined) return known;
      const queue = new Queue(queueName, { ...queueOptions(connection, modelKeys(prefix, model).base), ...telemetry });
      queue.on('error', onError);
      queues.set(model, queue);
      return queue;
    },
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}

/** `metrics` is documented for workers, and read wherever a job is ended: we end them through the queue. */
function queueOptions(connection: RedisClient, prefix: string): QueueOptions & Pick<WorkerOptions, 'metrics'> {
  return {
    connection,
    prefix,
    defaultJobOptions: { removeOnComplete: true, removeOnFail: failedJobs, attempts: 1 },
    streams: { events: { maxLen: queueEventsLength } },
    metrics: finishedCounts,
  };
}
