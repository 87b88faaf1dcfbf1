import { type MainContext, runMain, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, createEventHub, isStoreReachable, openStore } from '@darkroom/store';
import { BatchFormer, createFormerMetrics } from './batch-former.ts';

await runMain('batch-former', (context: MainContext<'batch-former'>) => {
  const { config, log, metrics, readiness, stopSignal } = context;
  const store = openStore(context);
  readiness.check = () => isStoreReachable(store);
  const wakeups = createEventHub(store);
  const former = new BatchFormer({
    store,
    wakeups,
    policy: { maxSize: config.batchMaxSize, timeoutMs: config.batchTimeoutMs },
    log,
    metrics: createFormerMetrics(metrics),
  });
  return new ServiceGroup([storeService({ store, check: () => checkServer(store), log, stopSignal }), former]);
});
