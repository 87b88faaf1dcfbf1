/**
 * Connection of one process to Redis: commands, the queue of webhook deliveries, and the settings every write needs.
 */
import { type BytesAddress, shardOfRequestId } from '@darkroom/core';
import type { Queue, QueueOptions, WorkerOptions } from 'bullmq';
import { Cluster, type Redis } from 'ioredis';
import { openBytes } from '../byte-stores/open-bytes.ts';
import { bullmq, bullmqOtel } from './bullmq.ts';
import { type ConnectionPoolOptions, createConnectionPool } from './connection-pool.ts';
import { deliveriesName, type ModelKeys, modelKeys, systemKeys } from './keys.ts';
import type { RedisClient } from './open-redis.ts';
import { defineScripts } from './scripts.ts';

export interface ConnectStoreOptions extends ConnectionPoolOptions {
  /** Prefix of all keys. */
  prefix?: string;
  /** How long results can be fetched after the end, ms. */
  resultTtlMs?: number;
  /**
   * How often a request that this process admits is delivered to workers before it fails, as it may be what kills them.
   */
  maxAttempts?: number | undefined;
  /** Location of images and other bytes; Redis if absent. */
  bytes?: BytesAddress | undefined;
  /** Makes BullMQ create spans for deliveries. */
  isTraced?: boolean;
}

export type StoreConnection = ReturnType<typeof connectStore>;

/** BullMQ's metrics of finished jobs: one data point per minute, for dashboards. */
export const finishedCounts = { maxDataPoints: 120 };
/** Length of BullMQ's own event stream, which only dashboards read. */
const queueEventsLength = 1000;

/** Connects lazily: the first command waits for the connection. */
export function connectStore({
  prefix = 'darkroom',
  resultTtlMs = 3_600_000,
  maxAttempts = 3,
  bytes,
  isTraced = false,
  onError = () => {},
  ...pool
}: ConnectStoreOptions) {
  const connections = createConnectionPool({ ...pool, onError });
  let isClosed = false;
  let deliveries: Queue | undefined;
  const redis = connections.open();
  defineScripts(redis);
  return {
    redis,
    prefix,
    resultTtlMs,
    maxAttempts,
    bytes: bytes && openBytes(bytes),
    /** Returns the keys of a shard. In this package a parameter `model` takes a shard unless documented otherwise. */
    keysOf: (model: string) => modelKeys(prefix, model),
    /** Returns the keys of the shard that an id names; undefined for a string that is no request id. */
    keysOfRequest(id: string): ModelKeys | undefined {
      const shard = shardOfRequestId(id);
      return shard === undefined ? undefined : modelKeys(prefix, shard);
    },
    /** Returns the keys of the shard of a request's own id. @throws RangeError for another string. */
    keysOfKnownRequest(id: string): ModelKeys {
      const shard = shardOfRequestId(id);
      if (shard === undefined) throw new RangeError(`${id} is no request id`);
      return modelKeys(prefix, shard);
    },
    /** Returns the queue of webhook deliveries, opened on first use. */
    deliveries: (): Queue => (deliveries ??= openDeliveries(redis, { prefix, isTraced, onError })),
    /** Opens another connection with the same settings: subscribers and blocking reads need their own. */
    duplicate: (): RedisClient => connections.open(),
    /**
     * Returns every server that holds keys, for commands that must run on each: one server, or the masters of a
     * Cluster.
     */
    masters: (): readonly Redis[] => (redis instanceof Cluster ? redis.nodes('master') : [redis]),
    get isClosed(): boolean {
      return isClosed;
    },
    async close(): Promise<void> {
      isClosed = true;
      await deliveries?.close();
      connections.close();
    },
  };
}

function openDeliveries(
  connection: RedisClient,
  { prefix, isTraced, onError }: { prefix: string; isTraced: boolean; onError: (error: Error) => void },
): Queue {
  // `metrics` is documented for workers, but BullMQ reads it wherever a job ends.
  const options: QueueOptions & Pick<WorkerOptions, 'metrics'> = {
    connection,
    prefix: systemKeys(prefix).deliveriesBase,
    defaultJobOptions: { removeOnComplete: true, attempts: 1 },
    streams: { events: { maxLen: queueEventsLength } },
    metrics: finishedCounts,
  };
  const telemetry = isTraced ? { telemetry: new (bullmqOtel().BullMQOtel)({ tracerName: 'bullmq' }) } : {};
  const deliveries = new (bullmq().Queue)(deliveriesName, { ...options, ...telemetry });
  deliveries.on('error', onError);
  return deliveries;
}

/** Options of `openStore`: settings of libs/config, and a logger for connection errors. */
export interface OpenStoreOptions {
  config: {
    redisUrl: string;
    redisSentinelPassword: string | undefined;
    redisPrefix: string;
    resultTtlS: number;
    /** Absent in processes that admit no requests. */
    maxAttempts?: number | undefined;
    /** Absent in processes that read and write no bytes. */
    bytesUrl?: BytesAddress | undefined;
    tracesUrl: string | undefined;
  };
  log: { warn(fields: { reason: string }, message: string): void };
  stopSignal: AbortSignal;
}

/** Opens the store of a process; it reconnects by itself. */
export function openStore({ config, log, stopSignal }: OpenStoreOptions): StoreConnection {
  return connectStore({
    url: config.redisUrl,
    sentinelPassword: config.redisSentinelPassword,
    prefix: config.redisPrefix,
    resultTtlMs: config.resultTtlS * 1000,
    maxAttempts: config.maxAttempts,
    bytes: config.bytesUrl,
    isTraced: config.tracesUrl !== undefined,
    onError: ({ message }) => log.warn({ reason: message }, 'no connection to Redis'),
    stopSignal,
  });
}
