/** Connections to what `REDIS_URL` names: one server, a Cluster, or the server that Sentinels know of. */
import { parseRedisUrl, type RedisAddress } from '@darkroom/core';
import { Cluster, Redis, type SentinelConnectionOptions, SentinelConnector } from 'ioredis';

/** Commands are the same on both. */
export type RedisClient = Redis | Cluster;

export interface OpenRedisOptions {
  /** See `parseRedisUrl`. */
  url: string;
  /** What Sentinels ask for. */
  sentinelPassword?: string | undefined;
  /** Asked after every failure to connect; false ends it. */
  shouldReconnect?: () => boolean;
}

/** The longest pause between two tries to connect, ms: how late we may notice that a Redis is back which had refused them. */
const retryMaxMs = 1000;
/** How often a Cluster is asked who owns what, so that a master that hangs is left once another has taken its place. */
const slotsRefreshMs = 2000;
const sentinelTimeoutMs = 2000;
/** The pause before a command is sent again while a slot has no master or is moving. */
const retryCommandMs = 50;

const common = {
  // null: a command waits for the connection to come back instead of failing after some retries, as BullMQ requires.
  maxRetriesPerRequest: null,
  enableReadyCheck: true,
  // A master that has become a replica refuses writes: connect again, to the new master, and send the command once more.
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? (2 as const) : false),
};

/**
 * Opens a connection that reconnects for ever, or until it should not. It connects at once and in the background; commands wait for it.
 *
 * @throws {TypeError} when the URL is none.
 */
export function openRedis({ url, sentinelPassword, shouldReconnect = () => true }: OpenRedisOptions): RedisClient {
  const address = parseRedisUrl(url);
  if (address === undefined) throw new TypeError('not a URL of a Redis, see parseRedisUrl');
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
 * Only `disconnect()` ends a connection. ioredis 6.0.0 never connects again what is ended while it is on its way: by `disconnect(true)`,
 * which asks for a new one and so has nothing to do then, and by whatever else goes wrong with a try.
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

/** The pause before the next try, ms; null for none. */
type RetryStrategy = (times: number) => number | null;

function openCluster(
  { kind: _kind, hosts, isTls, ...credentials }: RedisAddress & { kind: 'cluster' },
  clusterRetryStrategy: RetryStrategy,
): Cluster {
  const { maxRetriesPerRequest } = common;
  return new Cluster([...hosts], {
    clusterRetryStrategy,
    // ioredis 6.0.0 forgets who waits for `connect()` when the Cluster is not ready then, as in a failover; BullMQ does, for ever. A command
    // that comes too early is sent again in any case.
    enableReadyCheck: false,
    slotsRefreshInterval: slotsRefreshMs,
    // As on one server, a command waits for as long as a failover takes.
    maxRedirections: Infinity,
    retryDelayOnMoved: retryCommandMs,
    retryDelayOnFailover: retryCommandMs,
    retryDelayOnClusterDown: retryCommandMs,
    retryDelayOnTryAgain: retryCommandMs,
    redisOptions: { maxRetriesPerRequest, ...credentials, ...(isTls ? { tls: {} } : {}) },
    // A certificate names hosts; looked up first, they would be compared as addresses.
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
    // Sentinels tell us of a failover, so that we do not wait for a master that hangs.
    failoverDetector: true,
    Connector: SentinelConnectorOfOneTry,
    sentinelRetryStrategy,
    // One that hangs must not keep us from asking the next.
    sentinelCommandTimeout: sentinelTimeoutMs,
    ...credentials,
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    ...(isTls ? { tls: {}, enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
  };
}

/**
 * A try to connect ends the subscriptions of the one before. ioredis 6.0.0 keeps them when a master dies; told of the failover while the next
 * try asks who the master is, they end that try, and with it the connection for ever.
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
