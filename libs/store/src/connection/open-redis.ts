/** Opens connections to `REDIS_URL`: one server, a Cluster, or the master that Sentinels report. */
import { parseRedisUrl, type RedisAddress } from '@darkroom/core';
import { Cluster, Redis, type SentinelConnectionOptions, SentinelConnector } from 'ioredis';

/** ioredis client; both classes have the same commands. */
export type RedisClient = Redis | Cluster;

export interface OpenRedisOptions {
  /** See `parseRedisUrl`. */
  url: string;
  /** Password of the Sentinels themselves. */
  sentinelPassword?: string | undefined;
  /** Called after every failure to connect; returning false gives up. */
  shouldReconnect?: () => boolean;
}

/** Longest delay between connection attempts, ms: also the longest delay before a recovered Redis is noticed. */
const retryMaxMs = 1000;
/** How often slot owners of a Cluster are refreshed, so that a hanging master is abandoned once it was replaced. */
const slotsRefreshMs = 2000;
const sentinelTimeoutMs = 2000;
/** Delay before a command is retried while its slot has no master or is migrating. */
const retryCommandMs = 50;

const common = {
  // null: commands wait for the connection to come back instead of failing after some retries, as BullMQ requires.
  maxRetriesPerRequest: null,
  enableReadyCheck: true,
  // Users of docs/redis-users.acl lack CLIENT SETINFO, because servers before Redis 7.2 do not know it.
  disableClientInfo: true,
  // A master that became a replica refuses writes: reconnect to the new master and resend the command.
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? (2 as const) : false),
};

/**
 * Opens a connection that reconnects until `shouldReconnect` returns false. It connects in the background; commands
 * wait.
 *
 * @throws {TypeError} when the URL is invalid.
 */
export function openRedis({ url, sentinelPassword, shouldReconnect = () => true }: OpenRedisOptions): RedisClient {
  const address = parseRedisUrl(url);
  if (address === undefined) throw new TypeError('invalid Redis URL: see parseRedisUrl for the formats');
  const retryStrategy: RetryStrategy = (times) => (shouldReconnect() ? Math.min(25 * 2 ** times, retryMaxMs) : null);
  const redis = connectTo(address, sentinelPassword, retryStrategy);
  stayOpen(redis, shouldReconnect);
  return redis;
}

function connectTo(
  address: RedisAddress,
  sentinelPassword: string | undefined,
  retryStrategy: RetryStrategy,
): RedisClient {
  switch (address.kind) {
    case 'single':
    case 'socket':
      return new Redis(address.kind === 'single' ? address.url : address.path, { ...common, retryStrategy });
    case 'cluster':
      return openCluster(address, retryStrategy);
    case 'sentinel':
      return new Redis({ ...common, retryStrategy, ...sentinelOptions(address, sentinelPassword, retryStrategy) });
  }
}

/**
 * Makes the connection end only on `disconnect()`. ioredis 6.0.0 never reconnects after a connection attempt that was
 * ended: by `disconnect(true)`, which is ignored here while connecting, or by another failure during the attempt.
 */
function stayOpen(redis: RedisClient, shouldReconnect: () => boolean): void {
  const disconnect = redis.disconnect.bind(redis);
  let isClosed = false;
  redis.disconnect = (reconnect = false) => {
    if (reconnect && redis.status === 'connecting') return;
    isClosed ||= !reconnect;
    disconnect(reconnect);
  };
  redis.on('end', () => {
    if (!isClosed && shouldReconnect()) redis.connect().catch(() => {});
  });
}

/** Returns the delay before the next attempt, ms; null to give up. */
type RetryStrategy = (times: number) => number | null;

function openCluster(
  { kind: _kind, hosts, isTls, ...credentials }: RedisAddress & { kind: 'cluster' },
  clusterRetryStrategy: RetryStrategy,
): Cluster {
  const { maxRetriesPerRequest, disableClientInfo } = common;
  return new Cluster([...hosts], {
    clusterRetryStrategy,
    // With the ready check, ioredis 6.0.0 never settles `connect()` if the Cluster is not ready, as during a failover,
    // and BullMQ waits for it. Commands that come too early are retried in any case.
    enableReadyCheck: false,
    slotsRefreshInterval: slotsRefreshMs,
    // Commands wait for as long as a failover takes, as with a single server.
    maxRedirections: Infinity,
    retryDelayOnMoved: retryCommandMs,
    retryDelayOnFailover: retryCommandMs,
    retryDelayOnClusterDown: retryCommandMs,
    retryDelayOnTryAgain: retryCommandMs,
    redisOptions: { maxRetriesPerRequest, disableClientInfo, ...credentials, ...(isTls ? { tls: {} } : {}) },
    // Certificates name hosts: resolving them first would compare addresses instead.
    ...(isTls ? { dnsLookup: (host, done) => done(null, host) } : {}),
  });
}

function sentinelOptions(
  { kind: _kind, hosts, isTls, master, ...credentials }: RedisAddress & { kind: 'sentinel' },
  sentinelPassword: string | undefined,
  sentinelRetryStrategy: RetryStrategy,
) {
  return {
    sentinels: [...hosts],
    name: master,
    // Sentinels report failovers, so a hanging master is left early.
    failoverDetector: true,
    Connector: SentinelConnectorOfOneTry,
    sentinelRetryStrategy,
    // A hanging Sentinel must not delay the query to the next one.
    sentinelCommandTimeout: sentinelTimeoutMs,
    ...credentials,
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    ...(isTls ? { tls: {}, enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
  };
}

/**
 * Ends the failover subscriptions of the previous connection attempt. ioredis 6.0.0 retains them when a master dies: a
 * failover message during the next attempt would end that attempt, and the connection for ever.
 */
class SentinelConnectorOfOneTry extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
  }

  override connect(...args: Parameters<SentinelConnector['connect']>): ReturnType<SentinelConnector['connect']> {
    (this['failoverDetector'] as { cleanup(): void } | null)?.cleanup();
    return super.connect(...args);
  }
}
