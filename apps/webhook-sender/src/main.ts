import { closingService, type MainContext, runMain, ServiceGroup, startupCheck } from '@darkroom/service';
import { checkServer, connectStore, createEventHub, isStoreReachable, storeOptions } from '@darkroom/store';
import { WebhookSender } from './webhook-sender.ts';

await runMain('webhook-sender', ({ config, log, metrics, readiness, stopSignal }: MainContext<'webhook-sender'>) => {
  const onError = (error: Error): void => log.warn({ reason: error.message }, 'no connection to Redis');
  const store = connectStore({ ...storeOptions(config, onError), stopSignal });
  readiness.check = () => isStoreReachable(store);
  const sender = new WebhookSender({
    store,
    wakeups: createEventHub(store),
    log,
    metrics,
    allowPrivate: config.webhookAllowPrivate,
    lockMs: config.lockMs,
  });
  const checked = startupCheck({ check: () => checkServer(store), log, stopSignal });
  return new ServiceGroup([closingService(() => store.close()), checked, sender]);
});
