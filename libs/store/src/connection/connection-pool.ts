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
 * there; TCP gives up a quarter of an hour later.
 */
function reconnectWhenSilent(redis: Redis, silenceMs: number): void {
  let state: 'answered' | 'asked' | 'leaving' = 'answered';
  // What was asked before is asked again then, and has its time from there on.
  redis.on('ready', () => (state = 'answered'));
  const ask = (): void => {
    if (redis.status === 'end') clearInterval(timer);
    if (redis.status !== 'ready' || state === 'leaving') return;
    if (state === 'asked') {
      state = 'leaving';
      redis.disconnect(true);
    } else {
      state = 'asked';
      const answer = (): void => void (state = 'answered');
      redis.ping().then(answer, answer);
    }
  };
  const timer = setInterval(ask, silenceMs);
  timer.unref();
}

/** A Cluster says that no node answers; why the last one did not is more to the point. */
function reasonOf(error: Error): Error {
  return 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}
