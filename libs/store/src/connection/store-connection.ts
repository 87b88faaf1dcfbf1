/** One process's connection to Redis: commands, the queue of webhook deliveries, and the settings that every write needs. */
import { type BytesAddress, shardOfRequestId } from '@darkroom/core';
import type { Queue, QueueOptions, WorkerOptions } from 'bullmq';
import { Cluster, type Redis } from 'ioredis';
import { openBytes } from '../bytes/open-bytes.ts';
import { bullmq, bullmqOtel } from './bullmq.ts';
import { type ConnectionPoolOptions, createConnectionPool } from './connection-pool.ts';
import { deliveriesName, type ModelKeys, modelKeys, systemKeys } from './keys.ts';
import type { RedisClient } from './open-redis.ts';
import { defineScripts } from './scripts.ts';

export interface ConnectStoreOptions extends ConnectionPoolOptions {
  /** What all keys begin with. */
  prefix?: string;
  /** How long results can be fetched after the end, ms. */
  resultTtlMs?: number;
  /** How often a request may be handed to a worker before it counts as the one that kills workers. */
  maxAttempts?: number;
  /** Where the bytes of pictures are kept; in Redis without one. */
  bytes?: BytesAddress | undefined;
  /** What links to pictures are signed with; one that is kept in Redis by default. */
  linkSecret?: string | undefined;
  /** Whether BullMQ makes spans of deliveries. */
  isTraced?: boolean;
}

export type StoreConnection = ReturnType<typeof connectStore>;

/** BullMQ counts what it finished, and keeps the counts of so many minutes for dashboards. */
export const finishedCounts = { maxDataPoints: 120 };
/** BullMQ's own event stream serves dashboards only. */
const queueEventsLength = 1000;

/** Connects lazily: the first command waits for the connection. */
export function connectStore({
  prefix = 'darkroom',
  resultTtlMs = 3_600_000,
  maxAttempts = 3,
  bytes,
  linkSecret,
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
    linkSecret,
    /** Of a shard: of a model, which is its first shard, or of another one of it. So it is with all that takes a `model` here, unless it says otherwise. */
    keysOf: (model: string) => modelKeys(prefix, model),
    /** Undefined for what was never one of our ids. */
    keysOfRequest(id: string): ModelKeys | undefined {
      const shard = shardOfRequestId(id);
      return shard === undefined ? undefined : modelKeys(prefix, shard);
    },
    /** The queue of webhook deliveries, opened when first asked for. */
    deliveries: (): Queue => (deliveries ??= openDeliveries(redis, { prefix, isTraced, onError })),
    /** Another connection with the same settings: subscribers and blocking reads need their own. */
    duplicate: (): RedisClient => connections.open(),
    /** Every server that holds keys, for what has to be asked of each: one, or a Cluster's masters. */
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
  // `metrics` is documented for workers, and read wherever a job is ended.
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

/** What every process connects by: settings of libs/config, and what tells of lost connections. */
export interface OpenStoreOptions {
  config: {
    redisUrl: string;
    redisSentinelPassword: string | undefined;
    redisPrefix: string;
    resultTtlS: number;
    maxAttempts: number;
    /** Absent where nobody reads or writes bytes. */
    bytesUrl?: BytesAddress | undefined;
    /** Absent where nobody signs links. */
    linkSecret?: string | undefined;
    tracesUrl: string | undefined;
  };
  log: { warn(facts: { reason: string }, message: string): void };
  stopSignal: AbortSignal;
}

/** The store of a process; reconnecting goes on by itself. */
export function openStore({ config, log, stopSignal }: OpenStoreOptions): StoreConnection {
  return connectStore({
    url: config.redisUrl,
    sentinelPassword: config.redisSentinelPassword,
    prefix: config.redisPrefix,
    resultTtlMs: config.resultTtlS * 1000,
    maxAttempts: config.maxAttempts,
    bytes: config.bytesUrl,
    linkSecret: config.linkSecret,
    isTraced: config.tracesUrl !== undefined,
    onError: ({ message }) => log.warn({ reason: message }, 'no connection to Redis'),
    stopSignal,
  });
}
