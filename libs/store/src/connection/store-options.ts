import type { ConnectStoreOptions } from './store-connection.ts';

/** The settings of libs/config that every process connects by. */
export interface StoreSettings {
  redisUrl: string;
  redisSentinelPassword: string | undefined;
  redisPrefix: string;
  resultTtlS: number;
  maxAttempts: number;
  tracesUrl: string | undefined;
}

/** How a process with these settings connects. `onError` is told of lost connections; reconnecting goes on by itself. */
export function storeOptions(
  { redisUrl, redisSentinelPassword, redisPrefix, resultTtlS, maxAttempts, tracesUrl }: StoreSettings,
  onError: (error: Error) => void,
): ConnectStoreOptions {
  return {
    url: redisUrl,
    sentinelPassword: redisSentinelPassword,
    prefix: redisPrefix,
    resultTtlMs: resultTtlS * 1000,
    maxAttempts,
    isTraced: tracesUrl !== undefined,
    onError,
  };
}
