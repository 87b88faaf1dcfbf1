import type { Metrics } from './metrics.ts';

/** Readiness of a process. */
export type Readiness = ReturnType<typeof createReadiness>;

/** Creates the state behind `/ready` and the metric `darkroom_ready`. */
export function createReadiness(metrics: Metrics) {
  const readiness = {
    /** Set by `runMain`: true from the end of the start to the beginning of the stop. */
    isStarted: false,
    /** Additional condition; by default a started process is ready. */
    check: (): boolean | Promise<boolean> => true,
    /** Never rejects: a check that throws counts as false. */
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
    help: '1 when the process is ready: started, with Redis reachable; a worker also with its model loaded.',
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
