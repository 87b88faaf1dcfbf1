/** The connections of one process, opened as they are asked for and closed together. */
import { Redis } from 'ioredis';
import { openRedis, type OpenRedisOptions, type RedisClient } from './open-redis.ts';

export interface ConnectionPoolOptions extends Omit<OpenRedisOptions, 'shouldReconnect'> {
  /** Told of connection errors; reconnecting goes on by itself. */
  onError?: (error: Error) => void;
  /** Once aborted, a Redis that has never answered is not waited for any more: all that waits for it fails. */
  stopSignal?: AbortSignal;
  /** A server that has said nothing on a connection for this long, though it was asked, is connected to anew, ms. */
  silenceMs?: number;
}

export function createConnectionPool({
  onError = () => {},
  stopSignal,
  // Long enough for a server that is only slow: what it was asked before is asked again.
  silenceMs = 15_000,
  ...options
}: ConnectionPoolOptions) {
  const connections: RedisClient[] = [];
  let wasReached = false;
  // Who has not reached Redis yet has nothing to give back. Later a stop waits: Redis may be back in time.
  const isGivenUp = (): boolean => stopSignal?.aborted === true && !wasReached;
  const giveUp = (): void => {
    // ioredis would forget those that wait for their next try, and what waits for them would wait for ever.
    const trying = connections.filter(({ status }) => status !== 'reconnecting');
    if (isGivenUp()) for (const connection of trying) connection.disconnect();
  };
  // Later than those who are told to stop as well: else they would complain of what fails.
  stopSignal?.addEventListener('abort', () => setImmediate(giveUp));
  return {
    open(): RedisClient {
      const redis = openRedis({ ...options, shouldReconnect: () => !isGivenUp() });
      redis.on('error', (error: Error) => onError(reasonOf(error)));
      redis.once('ready', () => (wasReached = true));
      // A Cluster asks its nodes by itself who is gone.
      if (redis instanceof Redis) reconnectWhenSilent(redis, silenceMs);
      connections.push(redis);
      return redis;
    },
    close(): void {
      for (const connection of connections) connection.disconnect();
    },
  };
}

/**
 * A server that is gone without a word, with its machine or its network, leaves connections that look as if they were
 * there; TCP gives up a quarter of an hour later. One that hangs takes connections, and never says that they are ready.
 */
function reconnectWhenSilent(redis: Redis, silenceMs: number): void {
  let isAsked = false;
  const answered = (): void => void (isAsked = false);
  // What was asked before is asked again then, and has its time from there on.
  redis.on('connect', answered);
  const ask = (): void => {
    if (redis.status === 'end') clearInterval(timer);
    if (redis.status !== 'connect' && redis.status !== 'ready') return;
    if (isAsked) return redis.disconnect(true);
    isAsked = true;
    redis.ping().then(answered, answered);
  };
  const timer = setInterval(ask, silenceMs);
  timer.unref();
}

/** A Cluster says that no node answers; why the last one did not is more to the point. */
function reasonOf(error: Error): Error {
  return 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}
