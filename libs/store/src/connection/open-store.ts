import { connectStore, type StoreConnection } from './store-connection.ts';

/** What every process connects by: settings of libs/config, and what tells of lost connections. */
export interface OpenStoreOptions {
  config: {
    redisUrl: string;
    redisSentinelPassword: string | undefined;
    redisPrefix: string;
    resultTtlS: number;
    maxAttempts: number;
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
    isTraced: config.tracesUrl !== undefined,
    onError: ({ message }) => log.warn({ reason: message }, 'no connection to Redis'),
    stopSignal,
  });
}
