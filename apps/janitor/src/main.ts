import { closingService, type MainContext, runMain, ServiceGroup, startupCheck } from '@darkroom/service';
import { checkServer, connectStore, isStoreReachable, storeOptions } from '@darkroom/store';
import { Janitor } from './janitor.ts';
import { reportQueues } from './report-queues.ts';

await runMain('janitor', ({ config, log, metrics, readiness, stopSignal }: MainContext<'janitor'>) => {
  const onError = (error: Error): void => log.warn({ reason: error.message }, 'no connection to Redis');
  const store = connectStore({ ...storeOptions(config, onError), stopSignal });
  readiness.check = () => isStoreReachable(store);
  reportQueues({ store, metrics });
  const janitor = new Janitor({
    store,
    log,
    metrics,
    sweepIntervalMs: config.sweepIntervalMs,
    leakSweepIntervalMs: config.leakSweepIntervalS * 1000,
    workerTtlMs: config.workerTtlMs,
  });
  const checked = startupCheck({ check: () => checkServer(store), log, stopSignal });
  return new ServiceGroup([closingService(() => store.close()), checked, janitor]);
});
