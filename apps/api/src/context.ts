import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { ApiConfig } from '@darkroom/config';
import { type Clock, createPlaces, systemClock } from '@darkroom/core';
import { type Kinds, kinds as allKinds, maxSeed } from '@darkroom/kinds';
import { type Logger, Metrics } from '@darkroom/service';
import {
  type EventHub,
  listModels,
  listShardsByModel,
  type ModelStats,
  readStats,
  type StoreConnection,
  sumStats,
} from '@darkroom/store';
import { adminAccessOf } from './auth/admin-access.ts';
import type { ApiKeys } from './auth/api-keys.ts';
import { createSubmissionCounter } from './auth/limit-rate.ts';
import { createApiMetrics } from './http/api-metrics.ts';
import { createPictureDoor } from './pictures/picture-door.ts';
import { createCached } from './server/cached.ts';
import { type Every, everyInterval } from './server/every-interval.ts';
import { createStoreGuard } from './server/store-guard.ts';
import { createShardChooser } from './submit/choose-shard.ts';

export interface ApiDeps {
  store: StoreConnection;
  hub: EventHub;
  config: ApiConfig;
  /** None: open to all who reach it. */
  apiKeys?: ApiKeys;
  /** The kinds of work it takes; all there are. */
  kinds?: Kinds;
  log: Logger;
  metrics?: Metrics;
  /** Aborted when the process stops: open event streams then send their readers elsewhere. */
  draining: AbortSignal;
  clock?: Clock;
  every?: Every;
  /** 0 to 2³²−1. */
  drawSeed?: () => number;
  /** The longest wait for a Redis that is away, and for an answer of one that is there. */
  storeWaitMs?: number;
  /** The longest wait for where pictures that come with requests are kept, beside Redis. */
  bytesWaitMs?: number;
  /** The longest wait for workers that an operator calls. */
  callWaitMs?: number;
}

const defaultStoreWaitMs = 3000;
/** As long as workers wait before they take it for away. */
const defaultBytesWaitMs = 10_000;
const defaultCallWaitMs = 5000;

/** All that routes are made with, and what they call. */
export type ApiContext = ReturnType<typeof createContext>;

export function createContext({ store, storeWaitMs = defaultStoreWaitMs, ...deps }: ApiDeps) {
  const { config, log, hub, draining, clock = systemClock, every = everyInterval } = deps;
  const { callWaitMs = defaultCallWaitMs, bytesWaitMs = defaultBytesWaitMs } = deps;
  const { apiKeys = new Map(), kinds = allKinds, drawSeed = () => randomInt(maxSeed + 1) } = deps;
  // Every open stream listens; that is no leak.
  setMaxListeners(0, draining);
  const metrics = createApiMetrics(deps.metrics ?? new Metrics({ app: 'api', log }));
  const askStore = createStoreGuard(store, { redisMs: storeWaitMs, bytesMs: bytesWaitMs });
  const shared = { config, log, hub, draining, clock, every, apiKeys, kinds, drawSeed, metrics, askStore, callWaitMs };
  return {
    ...shared,
    /** Cards change when a worker brings a new one. */
    models: createCached(clock, () => askStore(listModels)),
    /** How all models are doing, by id. */
    pools: createCached(clock, () => askStore(readPools)),
    pictures: createPictureDoor(config),
    adminAccess: adminAccessOf(apiKeys, config.host),
    countSubmission: createSubmissionCounter(store, askStore, metrics),
    chooseShard: createShardChooser(),
    /** Of event streams, by the name of the key. */
    streamPlaces: createPlaces(config.eventStreamsMax),
  };
}

async function readPools(store: StoreConnection): Promise<ReadonlyMap<string, ModelStats>> {
  const models = [...(await listShardsByModel(store)).values()];
  const stats = await Promise.all(
    models.map(async (shards) => sumStats(await Promise.all(shards.map((shard) => readStats(store, shard))))),
  );
  return new Map(stats.map((pool) => [pool.model, pool]));
}
