import { closingService, type MainContext, runMain, ServiceGroup, startupCheck } from '@darkroom/service';
import { checkServer, connectStore, createWakeups, isStoreReachable, storeOptions } from '@darkroom/store';
import { WebhookSender } from './webhook-sender.ts';

await runMain('webhook-sender', ({ config, log, metrics, readiness }: MainContext<'webhook-sender'>) => {
  const store = connectStore(
    storeOptions(config, (error) => log.warn({ reason: error.message }, 'no connection to Redis')),
  );
  readiness.check = () => isStoreReachable(store);
  const sender = new WebhookSender({
    store,
    wakeups: createWakeups(store),
    log,
    metrics,
    allowPrivate: config.webhookAllowPrivate,
    lockMs: config.lockMs,
  });
  const checked = startupCheck({ check: () => checkServer(store), log });
  return new ServiceGroup([closingService(() => store.close()), checked, sender]);
});
