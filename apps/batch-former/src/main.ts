import { closingService, type MainContext, runMain, ServiceGroup, startupCheck } from '@darkroom/service';
import { checkServer, connectStore, createEventHub, isStoreReachable, storeOptions } from '@darkroom/store';
import { BatchFormer } from './batch-former.ts';
import { createFormerMetrics } from './former-metrics.ts';

await runMain('batch-former', ({ config, log, metrics, readiness, stopSignal }: MainContext<'batch-former'>) => {
  const onError = (error: Error): void => log.warn({ reason: error.message }, 'no connection to Redis');
  const store = connectStore({ ...storeOptions(config, onError), stopSignal });
  readiness.check = () => isStoreReachable(store);
  const wakeups = createEventHub(store);
  const former = new BatchFormer({
    store,
    wakeups,
    policy: {
      maxSize: config.batchMaxSize,
      timeoutMs: config.batchTimeoutMs,
      isBatching: config.enablePromptBatching,
      maxAttempts: config.maxAttempts,
      lookahead: config.batchLookahead,
    },
    log,
    metrics: createFormerMetrics(metrics),
  });
  const checked = startupCheck({ check: () => checkServer(store), log, stopSignal });
  return new ServiceGroup([closingService(() => store.close()), checked, former]);
});
