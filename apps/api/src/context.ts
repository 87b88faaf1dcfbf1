import type { ApiConfig } from '@darkroom/config';
import type { Clock } from '@darkroom/core';
import type { Logger, Metrics } from '@darkroom/service';
import type { EventHub, StoreConnection } from '@darkroom/store';
import type { AdminAccess } from './auth/admin-access.ts';
import type { ApiKey, ApiKeys } from './auth/api-keys.ts';
import type { ApiMetrics } from './http/api-metrics.ts';
import type { EstimateEnd } from './follow/end-estimator.ts';
import type { ErrorView } from './http/error-response.ts';
import type { LimitRate } from './auth/limit-rate.ts';
import type { ModelCatalog } from './submit/model-catalog.ts';
import type { AskStore } from './server/store-guard.ts';

/** Calls `tick` again and again until told to stop. */
export type Every = (intervalMs: number, tick: () => void) => () => void;

/** What an app is made from. */
export interface ApiDeps {
  store: StoreConnection;
  hub: EventHub;
  config: Pick<
    ApiConfig,
    | 'host'
    | 'queueMaxLength'
    | 'defaultModel'
    | 'unservedModels'
    | 'maxBodyBytes'
    | 'requestTimeoutS'
    | 'requestTimeoutMaxS'
    | 'corsOrigins'
    | 'storePrompts'
    | 'webhookAllowPrivate'
    | 'webhookProgressIntervalMs'
  >;
  /** None: open to all who reach it. */
  apiKeys?: ApiKeys;
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

/** What the routes work with. */
export interface ApiContext extends Required<Omit<ApiDeps, 'storeWaitMs' | 'store' | 'metrics'>> {
  metrics: ApiMetrics;
  adminAccess: AdminAccess;
  askStore: AskStore;
  models: ModelCatalog;
  limitRate: LimitRate;
  estimateEnd: EstimateEnd;
}

/** What is known of a request to the API besides itself. */
export interface ApiEnv {
  Variables: {
    /** The name of the API key; `''` where none is needed. */
    owner: string;
    apiKey: ApiKey;
    requestId: string | undefined;
    errorId: string | undefined;
    /** What errors look like on this route, where it speaks as another API. */
    errorView: ErrorView | undefined;
  };
}
