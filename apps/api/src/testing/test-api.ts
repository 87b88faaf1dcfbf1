/** API over a private store, with a clock, timers and log that the test controls. */
import { loadConfig } from '@darkroom/config';
import type { ImageCard } from '@darkroom/kinds';
import { createLogger } from '@darkroom/service';
import { createEventHub, type EventHub, publishModel, type StoreConnection } from '@darkroom/store';
import { imageCard, openTestStore, type TestStoreOptions } from '@darkroom/testing';
import { onTestFinished } from 'vitest';
import type { ApiDeps } from '../context/context.ts';
import { createApp } from '../app.ts';
import type { Api } from '../http/api-env.ts';

export const card = imageCard;

/** Returns the card with more capabilities. */
export function cardWith(more: Partial<ImageCard>): ImageCard {
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
  /** Log lines. */
  lines: string[];
  /** Fires the timers of this interval. */
  tick(intervalMs: number): void;
  /** Returns the number of active timers. */
  timers(): number;
  /** Creates another replica on the same Redis. */
  replica(deps?: Partial<ApiDeps>): TestApi;
  post(body: unknown): Promise<Response>;
  /** Posts a request that must be accepted and returns its id. */
  submit(body?: Record<string, unknown>): Promise<string>;
}

export interface TestApiOptions extends Partial<Omit<ApiDeps, 'config'>> {
  config?: Partial<ApiDeps['config']>;
  /** Wraps the event hub, to drop or observe messages. */
  wrapHub?: (hub: EventHub) => EventHub;
}

const config: ApiDeps['config'] = {
  ...loadConfig('api', {}),
  queueMaxLength: 100,
  maxBodyBytes: 65_536,
  requestTimeoutS: 600,
  ownerMaxBytes: 0,
};

/** Opens an API with one model, `tiny`, without workers. */
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
    // Long, so that a busy machine does not look like an unavailable Redis.
    storeWaitMs: 60_000,
    maxStreams: 100,
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
