/**
 * What the whole system looks like, for Prometheus: asked of Redis at every scrape, for all models at once. Every
 * janitor reports the same, so that one may be down: queries take `max`, never `sum`, over janitors.
 */
import { type Clock, systemClock } from '@darkroom/core';
import type { Metrics } from '@darkroom/service';
import {
  exportBullmqMetrics,
  isStoreReachable,
  listModelIds,
  readRedisMemory,
  readStats,
  readTally,
  type StoreConnection,
} from '@darkroom/store';
import { createQueueGauges } from './queue-gauges.ts';
import { reportTallies } from './report-tallies.ts';

export interface ReportQueuesOptions {
  store: StoreConnection;
  metrics: Metrics;
  clock?: Clock;
}

export function reportQueues({ store, metrics, clock = systemClock }: ReportQueuesOptions): void {
  const gauges = createQueueGauges(metrics);
  const tallies = reportTallies(metrics);
  let bullmq = '';
  metrics.addText(() => bullmq);
  metrics.onScrape({
    async refresh() {
      if (!(await isStoreReachable(store))) throw new Error('Redis does not answer');
      const models = await listModelIds(store);
      const [stats, tally, memory, page] = await Promise.all([
        Promise.all(models.map((model) => readStats(store, model))),
        Promise.all(models.map(async (model) => ({ model, tally: await readTally(store, model) }))),
        readRedisMemory(store),
        exportBullmqMetrics(store, { app: 'janitor' }),
      ]);
      return () => {
        gauges.set(stats, memory, clock.now());
        tallies.set(tally);
        bullmq = page;
      };
    },
    clear() {
      gauges.clear();
      tallies.set([]);
      bullmq = '';
    },
  });
}
