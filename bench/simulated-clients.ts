/** Redis load of the APIs of a simulated system: requests are submitted, streamed or polled, and fetched. */
import {
  connectStore,
  createEventHub,
  type EventHub,
  readEvents,
  readOutput,
  readRequest,
  readStats,
  type StoreConnection,
} from '@darkroom/store';
import { seedRequest } from '@darkroom/testing';

export interface ClientsOptions {
  url: string;
  prefix: string;
  model: string;
  /** True if clients stream events; otherwise they poll. */
  isFollowed: boolean;
}

interface Api {
  store: StoreConnection;
  hub: EventHub;
}

interface Client {
  api: Api;
  sinceMs: number;
  /** Unsubscribes. */
  leave: () => void;
}

const apis = 4;
const owners = 100;
const pollEveryMs = 1000;
/** Interval at which a stream checks for missed events: `checkMs` of apps/api/src/follow/tail-events.ts. */
const checkEveryMs = 5000;
/** Cache time of stats in apps/api (`createCached`). */
const statsEveryMs = 1000;

export class SimulatedClients {
  readonly #options: ClientsOptions;
  readonly #apis: readonly Api[];
  readonly #open = new Map<string, Client>();
  #submitted = 0;

  constructor(options: ClientsOptions) {
    this.#options = options;
    this.#apis = Array.from({ length: apis }, () => {
      const store = connectStore(options);
      return { store, hub: createEventHub(store) };
    });
  }

  async submit(nowMs: number): Promise<void> {
    const number = this.#submitted++;
    const api = this.#apis[number % apis]!;
    const { model, isFollowed } = this.#options;
    const options = { queueMaxLength: 1_000_000, ownerMaxBytes: 1e12 };
    const { id } = await seedRequest(api.store, { model, owner: `owner-${number % owners}`, options });
    this.#open.set(id, { api, sinceMs: nowMs, leave: () => {} });
    if (!isFollowed) return;
    const [leave] = await Promise.all([api.hub.subscribe(id, () => {}), readRequest(api.store, id)]);
    await readEvents(api.store, id, { after: 0 });
    this.#open.set(id, { api, sinceMs: nowMs, leave });
  }

  /** Fetches the output of a request that has ended. */
  async fetch(id: string): Promise<void> {
    const client = this.#open.get(id);
    if (client === undefined) return;
    this.#open.delete(id);
    client.leave();
    await readRequest(client.api.store, id);
    await readOutput(client.api.store, id, 0);
  }

  /** Yields the periodic reads of open requests that are due in this interval. */
  *upkeep(fromMs: number, toMs: number): Generator<Promise<unknown>> {
    const isDue = (sinceMs: number, everyMs: number): boolean =>
      Math.floor((toMs - sinceMs) / everyMs) > Math.floor((fromMs - sinceMs) / everyMs);
    const { model, isFollowed } = this.#options;
    if (isDue(0, statsEveryMs)) for (const { store } of this.#apis) yield readStats(store, model);
    for (const [id, { api, sinceMs }] of this.#open)
      if (isDue(sinceMs, isFollowed ? checkEveryMs : pollEveryMs)) {
        yield readRequest(api.store, id);
        if (isFollowed) yield readEvents(api.store, id, { after: 1_000_000 });
      }
  }

  async close(): Promise<void> {
    for (const { hub, store } of this.#apis) {
      hub.close();
      await store.close();
    }
  }
}
