import type { Metrics } from './metrics.ts';

/** Whether a process does its work right now. */
export type Readiness = ReturnType<typeof createReadiness>;

/** The answer to `/ready`, which is in the metrics as `darkroom_ready` too. */
export function createReadiness(metrics: Metrics) {
  const readiness = {
    /** Told by `runMain`: from the end of the start to the beginning of the stop. */
    isStarted: false,
    /** What has to hold besides; without it, having started is enough. */
    check: (): boolean | Promise<boolean> => true,
    /** Never rejects: a check that does means no. */
    async isReady(): Promise<boolean> {
      try {
        return readiness.isStarted && (await readiness.check());
      } catch {
        return false;
      }
    },
  };
  const gauge = metrics.gauge({
    name: 'darkroom_ready',
    help: '1 when the process does its work: started, with Redis in reach; a worker with its model loaded.',
  });
  metrics.onScrape({
    async refresh() {
      const isReady = await readiness.isReady();
      return () => gauge.set(isReady ? 1 : 0);
    },
    clear: () => gauge.set(0),
  });
  return readiness;
}
