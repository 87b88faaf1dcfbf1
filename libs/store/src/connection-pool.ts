/** The connections of one process, opened as they are asked for and closed together. */
import { openRedis, type OpenRedisOptions, type RedisClient } from './open-redis.ts';

export interface ConnectionPoolOptions extends Omit<OpenRedisOptions, 'shouldReconnect'> {
  /** Told of connection errors; reconnecting goes on by itself. */
  onError?: (error: Error) => void;
  /** Once aborted, a Redis that has never answered is not waited for any more: all that waits for it fails. */
  stopSignal?: AbortSignal;
}

export interface ConnectionPool {
  open(): RedisClient;
  close(): void;
}

export function createConnectionPool({
  onError = () => {},
  stopSignal,
  ...options
}: ConnectionPoolOptions): ConnectionPool {
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
    open() {
      const redis = openRedis({ ...options, shouldReconnect: () => !isGivenUp() });
      redis.on('error', (error: Error) => onError(reasonOf(error)));
      redis.once('ready', () => (wasReached = true));
      connections.push(redis);
      return redis;
    },
    close() {
      for (const connection of connections) connection.disconnect();
    },
  };
}

/** A Cluster says that no node answers; why the last one did not is more to the point. */
function reasonOf(error: Error): Error {
  return 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}
