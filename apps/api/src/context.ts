import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { ApiConfig } from '@darkroom/config';
import { type Clock, systemClock } from '@darkroom/core';
import { type Kinds, kinds as allKinds, maxSeed } from '@darkroom/kinds';
import { type Logger, Metrics } from '@darkroom/service';
import { type EventHub, listModels, type StoreConnection } from '@darkroom/store';
import { adminAccessOf } from './auth/admin-access.ts';
import type { ApiKeys } from './auth/api-keys.ts';
import { createSubmissionCounter } from './auth/limit-rate.ts';
import { createEndEstimator } from './follow/estimate-end.ts';
import { createModelPools } from './follow/model-pools.ts';
import { createEventStreams } from './follow/stream-events.ts';
import { createApiMetrics } from './http/api-metrics.ts';
import { createCached } from './server/cached.ts';
import { type Every, everyInterval } from './server/every-interval.ts';
import { createStoreGuard } from './server/store-guard.ts';
import { createRequestSubmitter } from './submit/submit-request.ts';

/** What an app is made from. */
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
}

const defaultStoreWaitMs = 3000;

/** All that routes are made with. */
export type ApiContext = ReturnType<typeof createContext>;

export function createContext({ store, storeWaitMs = defaultStoreWaitMs, ...deps }: ApiDeps) {
  const { config, log, clock = systemClock, every = everyInterval, apiKeys = new Map(), kinds = allKinds } = deps;
  const { drawSeed = () => randomInt(maxSeed + 1) } = deps;
  // Every open stream listens; that is no leak.
  setMaxListeners(0, deps.draining);
  const metrics = createApiMetrics(deps.metrics ?? new Metrics({ app: 'api', log }));
  const askStore = createStoreGuard(store, storeWaitMs);
  // Cards change when a worker brings a new one.
  const models = createCached(clock, () => askStore(listModels));
  const pools = createModelPools(askStore, clock);
  const estimateEnd = createEndEstimator(pools, kinds);
  const shared = { config, log, clock, metrics, askStore, models, pools, kinds, estimateEnd };
  const countSubmission = createSubmissionCounter(store, askStore, metrics);
  return {
    ...shared,
    hub: deps.hub,
    draining: deps.draining,
    every,
    apiKeys,
    adminAccess: adminAccessOf(apiKeys, config.host),
    submitRequest: createRequestSubmitter({ ...shared, drawSeed, countSubmission }),
    streamEvents: createEventStreams({ config, every, metrics, log }),
  };
}
