/** An API over a store of the test's own, with a clock, timers and a log in the test's hands. */
import { loadConfig } from '@darkroom/config';
import type { PictureCard } from '@darkroom/kinds';
import { createLogger } from '@darkroom/service';
import { createEventHub, type EventHub, publishModel, type StoreConnection } from '@darkroom/store';
import { openTestStore, type TestStoreOptions } from '@darkroom/testing';
import { onTestFinished } from 'vitest';
import type { ApiDeps } from '../context.ts';
import type { Api } from '../http/api-route.ts';
import { createApp } from '../app.ts';

export const card: PictureCard = {
  id: 'tiny',
  created: 1_700_000_000,
  ownedBy: 'tests',
  kind: 'picture',
  pipeline: 'StableDiffusionPipeline',
  sizes: { multiple: 32, min: 64, max: 256, default: { width: 128, height: 128 } },
  steps: { min: 1, max: 200, default: 12 },
  guidance: { min: 1, max: 20, default: 3 },
  schedulers: ['ddim', 'euler'],
  defaultScheduler: 'ddim',
  maxPromptTokens: 77,
};

/** The same, which can more. */
export function cardWith(more: Partial<PictureCard>): PictureCard {
  return { ...card, ...more };
}

export const cardWithLoras = cardWith({
  loras: [
    { id: 'pixels', rank: 4 },
    { id: 'large', rank: 120 },
    { id: 'sunset', rank: 16 },
  ],
});

export interface TestApi {
  api: Api;
  store: StoreConnection;
  hub: EventHub;
  draining: AbortController;
  /** Lines of the log. */
  lines: string[];
  /** Fires the timers of this interval. */
  tick(intervalMs: number): void;
  /** Timers that have not been stopped. */
  timers(): number;
  /** Another replica on the same Redis. */
  replica(deps?: Partial<ApiDeps>): TestApi;
  post(body: unknown): Promise<Response>;
  /** Posts a request that must be accepted. */
  submit(body?: Record<string, unknown>): Promise<string>;
}

export interface TestApiOptions extends Partial<Omit<ApiDeps, 'config'>> {
  config?: Partial<ApiDeps['config']>;
  /** What else listens between Redis and the API. */
  wrapHub?: (hub: EventHub) => EventHub;
}

const config: ApiDeps['config'] = {
  ...loadConfig('api', {}),
  queueMaxLength: 100,
  maxBodyBytes: 65_536,
  requestTimeoutS: 600,
  requestTimeoutMaxS: 3600,
  eventStreamsMax: 100,
  eventStreamIdleS: 60,
  requestMaxBytes: 0,
  ownerMaxBytes: 0,
};

/** With one model, `tiny`, that no worker serves. */
export async function openTestApi(options: TestApiOptions & TestStoreOptions = {}): Promise<TestApi> {
  const { resultTtlMs } = options;
  const store = options.store ?? openTestStore(resultTtlMs === undefined ? {} : { resultTtlMs });
  await publishModel(store, card);
  return createTestApi({ ...options, store });
}

export function createTestApi({
  store,
  wrapHub = (hub) => hub,
  ...options
}: TestApiOptions & { store: StoreConnection }): TestApi {
  const hub = wrapHub(createEventHub(store));
  onTestFinished(() => hub.close());
  const lines: string[] = [];
  const timers = new Set<Timer>();
  const draining = new AbortController();
  const api = createApp({
    drawSeed: () => 42,
    // A machine with other things to do is no Redis that is away.
    storeWaitMs: 60_000,
    every: (intervalMs, tick) => startTimer(timers, { intervalMs, tick }),
    ...options,
    store,
    hub,
    log: createLogger({ app: 'api', level: 'trace', stream: { write: (line) => void lines.push(line) } }),
    draining: draining.signal,
    config: { ...config, ...options.config },
  });
  return {
    api,
    store,
    hub,
    draining,
    lines,
    tick: (wanted) => [...timers].filter(({ intervalMs }) => intervalMs === wanted).forEach(({ tick }) => tick()),
    timers: () => timers.size,
    replica: (deps) => createTestApi({ ...options, ...deps, store }),
    post: (body) => postTo(api, body),
    async submit(body = {}) {
      const response = await postTo(api, { prompt: 'a fox', ...body });
      if (response.status !== 202) throw new Error(`${response.status}: ${await response.text()}`);
      return ((await response.json()) as { request_id: string }).request_id;
    },
  };
}

interface Timer {
  intervalMs: number;
  tick: () => void;
}

function startTimer(timers: Set<Timer>, timer: Timer): () => void {
  timers.add(timer);
  return () => timers.delete(timer);
}

async function postTo(api: Api, body: unknown): Promise<Response> {
  const headers = { 'Content-Type': 'application/json' };
  return api.request('/v1/predict', { method: 'POST', headers, body: JSON.stringify(body) });
}
