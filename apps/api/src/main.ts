import { BaseService, runMain, ServiceGroup, startupCheck } from '@darkroom/service';
import {
  checkServer,
  connectStore,
  createEventHub,
  type EventHub,
  isStoreReachable,
  type StoreConnection,
  storeOptions,
} from '@darkroom/store';
import { createApp } from './app.ts';
import { isOpenToAll, loadApiKeys } from './auth/api-keys.ts';
import { ApiServer } from './server/api-server.ts';

/** Closes the connections to Redis when the process stops. They open by themselves. */
class StoreService extends BaseService {
  readonly #store: StoreConnection;
  readonly #hub: EventHub;

  constructor(store: StoreConnection, hub: EventHub) {
    super();
    this.#store = store;
    this.#hub = hub;
  }

  protected override async onStart(): Promise<void> {}

  protected override async onStop(): Promise<void> {
    this.#hub.close();
    await this.#store.close();
  }
}

await runMain('api', ({ config, log, metrics, readiness, stopSignal }) => {
  const onError = (error: Error): void => log.warn({ reason: error.message }, 'no connection to Redis');
  const store = connectStore({ ...storeOptions(config, onError), stopSignal });
  readiness.check = () => isStoreReachable(store);
  const hub = createEventHub(store);
  const draining = new AbortController();
  const apiKeys = loadApiKeys(config);
  if (isOpenToAll(apiKeys)) log.warn({ host: config.host }, 'no API keys: open to everybody who reaches this address');
  const api = createApp({ store, hub, config, apiKeys, log, metrics, draining: draining.signal });
  const { host, port } = config;
  const checked = startupCheck({ check: () => checkServer(store), log, stopSignal });
  // Stopped in the opposite order: the last answers still need the store.
  return new ServiceGroup([new StoreService(store, hub), checked, new ApiServer({ api, host, port, draining, log })]);
});
