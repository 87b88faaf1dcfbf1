import { runMain, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, createEventHub, isStoreReachable, openStore } from '@darkroom/store';
import { createApp } from './app.ts';
import { isOpenToAll, loadApiKeys } from './auth/api-keys.ts';
import { ApiServer } from './server/api-server.ts';

await runMain('api', (context) => {
  const { config, log, metrics, readiness, stopSignal } = context;
  const store = openStore(context);
  readiness.check = () => isStoreReachable(store);
  const hub = createEventHub(store);
  const draining = new AbortController();
  const apiKeys = loadApiKeys(config);
  if (isOpenToAll(apiKeys)) log.warn({ host: config.host }, 'no API keys: open to everybody who reaches this address');
  const api = createApp({ store, hub, config, apiKeys, log, metrics, draining: draining.signal });
  const { host, port } = config;
  const checked = storeService({ store, check: () => checkServer(store), log, stopSignal });
  // Stopped in the opposite order: the last answers still need the store.
  return new ServiceGroup([checked, new ApiServer({ api, host, port, draining, log })]);
});
