import { type MainContext, runMain, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, createEventHub, isStoreReachable, openStore } from '@darkroom/store';
import { WebhookSender } from './webhook-sender.ts';

await runMain('webhook-sender', (context: MainContext<'webhook-sender'>) => {
  const { config, log, metrics, readiness, stopSignal } = context;
  const store = openStore(context);
  readiness.check = () => isStoreReachable(store);
  const sender = new WebhookSender({
    store,
    wakeups: createEventHub(store),
    log,
    metrics,
    allowPrivate: config.webhookAllowPrivate,
    ...(config.publicUrl !== undefined && { publicUrl: config.publicUrl }),
  });
  return new ServiceGroup([storeService({ store, check: () => checkServer(store), log, stopSignal }), sender]);
});
