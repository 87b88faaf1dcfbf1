import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { ApiConfig } from '@darkroom/config';
import { type Clock, type Every, everyInterval, systemClock } from '@darkroom/core';
import { type Kinds, kinds as allKinds, maxSeed } from '@darkroom/kinds';
import { type Logger, Metrics } from '@darkroom/service';
import {
  type EventHub,
  listModels,
  listShardsByModel,
  type ModelStats,
  readIdSecret,
  readStats,
  type StoreConnection,
  sumStats,
} from '@darkroom/store';
import { adminAccessOf } from '../auth/admin-access.ts';
import type { ApiKeys } from '../auth/api-keys.ts';
import { createSubmissionCounter } from '../auth/limit-rate.ts';
import { WrongKeyLimit } from '../auth/limit-wrong-keys.ts';
import { StoredKeys } from '../auth/stored-keys.ts';
import { createApiMetrics } from '../http/api-metrics.ts';
import { createImageIntake } from '../images/image-intake.ts';
import { createCached } from '../server/cached.ts';
import { createStoreGuard } from '../server/store-guard.ts';
import { createShardChooser } from './choose-shard.ts';

export interface ApiDeps {
  store: StoreConnection;
  hub: EventHub;
  config: ApiConfig;
  /** By default empty: open to every client. */
  apiKeys?: ApiKeys;
  /** Adds the keys stored in Redis to `apiKeys`. */
  storedKeys?: StoredKeys;
  /** Supported kinds of work; by default all. */
  kinds?: Kinds;
  log: Logger;
  metrics?: Metrics;
  /** Aborts when the process stops: event streams then end, and clients reconnect to another replica. */
  draining: AbortSignal;
  clock?: Clock;
  every?: Every;
  /** Returns a random seed, 0 to 2³²−1. */
  drawSeed?: () => number;
  /** Timeout for the connection to Redis, and again for an answer, ms. */
  storeWaitMs?: number;
  /** Timeout for the image store, ms. */
  bytesWaitMs?: number;
  /** Timeout for replies of workers to an operator's command, ms. */
  callWaitMs?: number;
  /** Max. open event streams per key; without keys all clients count as one. */
  maxStreams?: number;
}

const defaultStoreWaitMs = 3000;
/** Equal to the timeout of workers for the image store. */
const defaultBytesWaitMs = 10_000;
const defaultCallWaitMs = 5000;
/** A stream takes about 20 KB. */
const defaultMaxStreams = 5000;

/** Dependencies and shared state of all routes. */
export type ApiContext = ReturnType<typeof createContext>;

export function createContext({ store, storeWaitMs = defaultStoreWaitMs, ...deps }: ApiDeps) {
  const { config, log, hub, draining, clock = systemClock, every = everyInterval } = deps;
  const { callWaitMs = defaultCallWaitMs, bytesWaitMs = defaultBytesWaitMs, maxStreams = defaultMaxStreams } = deps;
  const { apiKeys = new Map(), kinds = allKinds, drawSeed = () => randomInt(maxSeed + 1) } = deps;
  // Every open stream listens: not a leak.
  setMaxListeners(0, draining);
  const metrics = createApiMetrics(deps.metrics ?? new Metrics({ app: 'api', log }));
  const withStore = createStoreGuard(store, { redisMs: storeWaitMs, bytesMs: bytesWaitMs });
  const shared = { config, log, hub, draining, clock, every, apiKeys, kinds, drawSeed, metrics, withStore, callWaitMs };
  return {
    ...shared,
    maxStreams,
    /** Model cards. A card changes when a worker publishes a new one. */
    models: createCached(clock, () => withStore(listModels)),
    /** Statistics of all models by id. */
    pools: createCached(clock, () => withStore(readPools)),
    /** Secret that authenticates request ids. */
    idSecret: createCached(clock, () => withStore(readIdSecret)),
    storedKeys: deps.storedKeys ?? new StoredKeys({ store, keys: apiKeys, log }),
    images: createImageIntake(config),
    adminAccess: adminAccessOf(apiKeys, config.host),
    wrongKeys: new WrongKeyLimit({ clock, log }),
    countSubmission: createSubmissionCounter(store, withStore, metrics),
    chooseShard: createShardChooser(),
    /** Number of open event streams by name of the key. */
    openStreams: new Map<string, number>(),
  };
}

async function readPools(store: StoreConnection): Promise<ReadonlyMap<string, ModelStats>> {
  const models = [...(await listShardsByModel(store)).values()];
  const stats = await Promise.all(
    models.map(async (shards) => sumStats(await Promise.all(shards.map((shard) => readStats(store, shard))))),
  );
  return new Map(stats.map((pool) => [pool.model, pool]));
}
