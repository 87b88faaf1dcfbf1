/** Connections of one process: opened on demand, closed together. */
import { Redis } from 'ioredis';
import { openRedis, type OpenRedisOptions, type RedisClient } from './open-redis.ts';

export interface ConnectionPoolOptions extends Omit<OpenRedisOptions, 'shouldReconnect'> {
  /** Called on connection errors; the pool reconnects by itself. */
  onError?: (error: Error) => void;
  /**
   * Aborting it makes all pending commands fail if Redis has never been reached; later they wait for it to come back.
   */
  stopSignal?: AbortSignal;
  /** Reconnects when a PING on a connection gets no reply within this time, ms. */
  silenceMs?: number;
}

export function createConnectionPool({
  onError = () => {},
  stopSignal,
  // Longer than the delays of a slow server: after a reconnect, pending commands are sent again.
  silenceMs = 15_000,
  ...options
}: ConnectionPoolOptions) {
  const connections = new Set<RedisClient>();
  let wasReached = false;
  // If Redis was never reached, there are no leases to release. Otherwise a stop waits: Redis may come back in time.
  const isGivenUp = (): boolean => stopSignal?.aborted === true && !wasReached;
  const giveUp = (): void => {
    // Skip connections that are waiting to retry: ioredis would drop them, and their commands would never settle.
    const trying = [...connections].filter(({ status }) => status !== 'reconnecting');
    if (isGivenUp()) for (const connection of trying) connection.disconnect();
  };
  // Runs after the other abort listeners: otherwise they would log the failures that this causes.
  stopSignal?.addEventListener('abort', () => setImmediate(giveUp));
  return {
    open(): RedisClient {
      const redis = openRedis({ ...options, shouldReconnect: () => !isGivenUp() });
      redis.on('error', (error: Error) => onError(reasonOf(error)));
      redis.once('ready', () => (wasReached = true));
      // A Cluster detects lost nodes by itself.
      if (redis instanceof Redis) reconnectWhenSilent(redis, silenceMs);
      connections.add(redis);
      // Unless `openRedis` has begun to connect again.
      redis.on('end', () => redis.status === 'end' && connections.delete(redis));
      return redis;
    },
    close(): void {
      for (const connection of connections) connection.disconnect();
    },
  };
}

/**
 * Detects dead connections by PING. A machine or network that disappears leaves connections that TCP closes only after
 * 15 minutes; a server that hangs accepts connections but never becomes ready.
 */
function reconnectWhenSilent(redis: Redis, silenceMs: number): void {
  let isPending = false;
  const onReply = (): void => void (isPending = false);
  // After a reconnect, pending commands are sent again and get the full time.
  redis.on('connect', onReply);
  const ping = (): void => {
    if (redis.status === 'end') clearInterval(timer);
    if (redis.status !== 'connect' && redis.status !== 'ready') return;
    if (isPending) return redis.disconnect(true);
    isPending = true;
    redis.ping().then(onReply, onReply);
  };
  const timer = setInterval(ping, silenceMs);
  timer.unref();
}

/** Returns the error of the last node instead of ioredis' generic "no node answers" error of a Cluster. */
function reasonOf(error: Error): Error {
  return 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}
