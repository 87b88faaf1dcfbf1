import { type MainContext, runMain, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, isStoreReachable, openStore } from '@darkroom/store';
import { Janitor } from './janitor.ts';
import { reportQueues } from './report-queues.ts';

/** Interval of the sweeps for dead workers and expired deadlines, ms: several in each WORKER_TTL_MS. */
const sweepIntervalMs = 500;

await runMain('janitor', (context: MainContext<'janitor'>) => {
  const { config, log, metrics, readiness, stopSignal } = context;
  const store = openStore(context);
  readiness.check = () => isStoreReachable(store);
  reportQueues({ store, metrics });
  const janitor = new Janitor({
    store,
    log,
    metrics,
    sweepIntervalMs,
    leakSweepIntervalMs: 1000 * Math.min(60, Math.max(1, config.resultTtlS / 60)),
    workerTtlMs: config.workerTtlMs,
    modelShards: config.modelShards,
  });
  return new ServiceGroup([storeService({ store, check: () => checkServer(store), log, stopSignal }), janitor]);
});
