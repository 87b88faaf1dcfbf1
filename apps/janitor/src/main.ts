import { type MainContext, runMain, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, isStoreReachable, openStore } from '@darkroom/store';
import { Janitor } from './janitor.ts';
import { reportQueues } from './report-queues.ts';

await runMain('janitor', (context: MainContext<'janitor'>) => {
  const { config, log, metrics, readiness, stopSignal } = context;
  const store = openStore(context);
  readiness.check = () => isStoreReachable(store);
  reportQueues({ store, metrics });
  const janitor = new Janitor({
    store,
    log,
    metrics,
    sweepIntervalMs: config.sweepIntervalMs,
    leakSweepIntervalMs: config.leakSweepIntervalS * 1000,
    workerTtlMs: config.workerTtlMs,
    modelShards: config.modelShards,
  });
  return new ServiceGroup([storeService({ store, check: () => checkServer(store), log, stopSignal }), janitor]);
});
