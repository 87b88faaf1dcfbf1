import { closingService, type MainContext, runMain, ServiceGroup } from '@darkroom/service';
import { connectStore, createWakeups, storeOptions } from '@darkroom/store';
import { WebhookSender } from './webhook-sender.ts';

await runMain('webhook-sender', ({ config, log }: MainContext<'webhook-sender'>) => {
  const store = connectStore(
    storeOptions(config, (error) => log.warn({ reason: error.message }, 'no connection to Redis')),
  );
  const sender = new WebhookSender({
    store,
    wakeups: createWakeups(store),
    log,
    allowPrivate: config.webhookAllowPrivate,
    lockMs: config.lockMs,
  });
  return new ServiceGroup([closingService(() => store.close()), sender]);
});
