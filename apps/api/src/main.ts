import { closingService, runMain, ServiceGroup, startupCheck } from '@darkroom/service';
import { checkServer, connectStore, createEventHub, isStoreReachable, storeOptions } from '@darkroom/store';
import { createApp } from './app.ts';
import { isOpenToAll, loadApiKeys } from './auth/api-keys.ts';
import { ApiServer } from './server/api-server.ts';

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
  const closing = closingService(() => {
    hub.close();
    return store.close();
  });
  const checked = startupCheck({ check: () => checkServer(store), log, stopSignal });
  // Stopped in the opposite order: the last answers still need the store.
  return new ServiceGroup([closing, checked, new ApiServer({ api, host, port, draining, log })]);
});
