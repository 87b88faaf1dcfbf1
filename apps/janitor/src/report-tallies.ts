import type { HistogramSeries, Metrics } from '@darkroom/service';
import type { TalliedDurations, Tally } from '@darkroom/store';

/** A model's. */
export interface ModelTally {
  model: string;
  tally: Tally;
}

/** What became of requests: counted in Redis where it happens, shown here. */
export function reportTallies(metrics: Metrics): { set: (stats: readonly ModelTally[]) => void } {
  let current: readonly ModelTally[] = [];
  showDurations(metrics, () => current);
  const setCounters = createTallyCounters(metrics);
  return {
    set(stats) {
      current = stats;
      setCounters(stats);
    },
  };
}

function showDurations(metrics: Metrics, read: () => readonly ModelTally[]): void {
  metrics.storedHistogram(
    {
      name: 'darkroom_state_seconds',
      help: 'How long requests were in a state before they went on to the next; its count is that of the transitions.',
      labels: ['model', 'state', 'next'],
    },
    () =>
      read().flatMap(({ model, tally }) =>
        tally.states.map(({ state, next, ...durations }) => toSeries({ model, state, next }, durations)),
      ),
  );
  metrics.storedHistogram(
    {
      name: 'darkroom_request_seconds',
      help: 'From the admission of a request to its end; its count is that of the requests that ended so.',
      labels: ['model', 'outcome'],
    },
    () =>
      read().flatMap(({ model, tally }) =>
        tally.ends.map(({ state, ...durations }) => toSeries({ model, outcome: state }, durations)),
      ),
  );
}

function createTallyCounters(metrics: Metrics): (stats: readonly ModelTally[]) => void {
  const requeues = metrics.counter({
    name: 'darkroom_requeues_total',
    help: 'Running requests that went back to the queue: worker_lost, engine_failed (both count as attempts, unless it got further than ever), worker_stopped.',
    labels: ['model', 'reason'],
  });
  const buried = metrics.counter({
    name: 'darkroom_workers_buried_total',
    help: 'Workers that were taken for dead because their heartbeat stopped.',
    labels: ['model'],
  });
  return (stats) => {
    requeues.reset();
    buried.reset();
    for (const { model, tally } of stats) {
      for (const [reason, count] of Object.entries(tally.requeues)) requeues.inc({ model, reason }, count);
      buried.inc({ model }, tally.buried);
    }
  };
}

function toSeries(
  labels: Readonly<Record<string, string>>,
  { boundsMs, counts, sumMs }: TalliedDurations,
): HistogramSeries {
  return { labels, bounds: boundsMs.map((ms) => ms / 1000), counts, sum: sumMs / 1000 };
}
