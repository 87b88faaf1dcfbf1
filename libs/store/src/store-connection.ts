/** One process's connection to Redis: commands, the BullMQ queues of the models it touches, and the settings that every write needs. */
import { Queue, type QueueOptions, type WorkerOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { modelKeys, type ModelKeys, queueName } from './keys.ts';
import { defineScripts } from './scripts.ts';

export interface ConnectStoreOptions {
  /** `redis://`, `rediss://` or `unix:///path/to/redis.sock`. */
  url: string;
  /** What all keys begin with. */
  prefix?: string;
  /** How long results can be fetched after the end, ms. */
  resultTtlMs?: number;
  /** How much longer an id is answered with "gone" instead of "unknown", ms. */
  goneTtlMs?: number;
  /** Told of connection errors; reconnecting goes on by itself. */
  onError?: (error: Error) => void;
}

export interface StoreConnection {
  readonly redis: Redis;
  readonly prefix: string;
  readonly resultTtlMs: number;
  readonly goneTtlMs: number;
  keysOf(model: string): ModelKeys;
  /** The queue of a model, or with `webhooksTag` that of deliveries. */
  queueOf(model: string): Queue;
  /** Another connection with the same settings: subscribers and blocking reads need their own. */
  duplicate(): Redis;
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
  url,
  prefix = 'darkroom',
  resultTtlMs = defaultResultTtlMs,
  goneTtlMs = defaultGoneTtlMs,
  onError = () => {},
}: ConnectStoreOptions): StoreConnection {
  const connections: Redis[] = [];
  const connect = (): Redis => {
    const target = url.startsWith('unix://') ? url.slice('unix://'.length) : url;
    // null: a command waits for the connection to come back instead of failing after some retries, as BullMQ requires.
    const redis = new Redis(target, { maxRetriesPerRequest: null, enableReadyCheck: true });
    redis.on('error', onError);
    connections.push(redis);
    return redis;
  };
  const redis = connect();
  defineScripts(redis);
  const queues = new Map<string, Queue>();

  return {
    redis,
    prefix,
    resultTtlMs,
    goneTtlMs,
    keysOf: (model) => modelKeys(prefix, model),
    queueOf(model) {
      const known = queues.get(model);
      if (known !== undefined) return known;
      const queue = new Queue(queueName, queueOptions(redis, modelKeys(prefix, model).base));
      queue.on('error', onError);
      queues.set(model, queue);
      return queue;
    },
    duplicate: connect,
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      for (const connection of connections) connection.disconnect();
    },
  };
}

/** `metrics` is documented for workers, and read wherever a job is ended: we end them through the queue. */
function queueOptions(connection: Redis, prefix: string): QueueOptions & Pick<WorkerOptions, 'metrics'> {
  return {
    connection,
    prefix,
    defaultJobOptions: { removeOnComplete: true, removeOnFail: failedJobs, attempts: 1 },
    streams: { events: { maxLen: queueEventsLength } },
    metrics: finishedCounts,
  };
}
