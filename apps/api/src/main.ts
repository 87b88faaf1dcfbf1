import { runMain, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, createEventHub, isStoreReachable, openStore } from '@darkroom/store';
import { createApp } from './app.ts';
import { isOpenToAll, loadApiKeys } from './auth/api-keys.ts';
import { StoredKeys } from './auth/stored-keys.ts';
import { KeysFileWatch } from './auth/watch-keys-file.ts';
import { ApiServer } from './server/api-server.ts';

await runMain('api', (context) => {
  const { config, log, metrics, readiness, stopSignal } = context;
  const store = openStore(context);
  readiness.check = () => isStoreReachable(store);
  const hub = createEventHub(store);
  const draining = new AbortController();
  const apiKeys = loadApiKeys(config);
  if (isOpenToAll(apiKeys))
    log.warn({ host: config.host }, 'no API keys set: API is open to every client that reaches this address');
  const storedKeys = new StoredKeys({ store, keys: apiKeys, log });
  const api = createApp({ store, hub, config, apiKeys, storedKeys, log, metrics, draining: draining.signal });
  const { host, port } = config;
  const keysFile = new KeysFileWatch({ settings: config, keys: apiKeys, log });
  const checked = storeService({ store, check: () => checkServer(store), log, stopSignal });
  // Services stop in reverse order: the last answers still need the store.
  return new ServiceGroup([
    checked,
    keysFile.loop(),
    storedKeys.loop(),
    new ApiServer({ api, host, port, draining, log }),
  ]);
});
