import { closingService, type MainContext, runMain, ServiceGroup } from '@darkroom/service';
import { connectStore, storeOptions } from '@darkroom/store';
import { Janitor } from './janitor.ts';

await runMain('janitor', ({ config, log }: MainContext<'janitor'>) => {
  const store = connectStore(
    storeOptions(config, (error) => log.warn({ reason: error.message }, 'no connection to Redis')),
  );
  const janitor = new Janitor({
    store,
    log,
    sweepIntervalMs: config.sweepIntervalMs,
    leakSweepIntervalMs: config.leakSweepIntervalS * 1000,
    lockMs: config.lockMs,
  });
  return new ServiceGroup([closingService(() => store.close()), janitor]);
});
