import type { MeasuredRange, WorkerPace } from '@darkroom/core';
import type { ExecutorEvent } from '@darkroom/executor';
import type { ActiveRequest } from '../request/active-request.ts';

/** Steps that are remembered: enough for a percentile, few enough to follow a change of load within seconds. */
const sampleCount = 64;
/** Events after which rows are gone that no step has finished. */
const endsEarly: ReadonlySet<ExecutorEvent['type']> = new Set(['request-canceled', 'request-failed', 'engine-lost']);

/** Measures an engine's steps, by the wall, so that what comes between two of them (decoding, above all) counts too. */
export class PaceMeter {
  #samples: { stepMs: number; costMs: number }[] = [];
  /** When the last step ended, if the next one followed at once. */
  #lastStepAtMs: number | undefined;

  /** The events of one step. */
  observe(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>, nowMs: number): void {
    const stats = events.findLast((event) => event.type === 'stats');
    const stepped = events.filter((event) => event.type === 'progress');
    // Rows may have left in the middle of things, so it is not known how busy the engine is.
    if (events.some(({ type }) => endsEarly.has(type))) this.#lastStepAtMs = undefined;
    if (stats === undefined) return;
    const cost = stepped.reduce(
      (sum, { requestId, total = Infinity }) => sum + (active.get(requestId)?.rowCost ?? 0) / total,
      0,
    );
    const stepMs = this.#lastStepAtMs === undefined ? stats.stepMs : nowMs - this.#lastStepAtMs;
    const finished = stepped.filter(({ done, total }) => done === total).length;
    this.#lastStepAtMs = stats.tableSlots + stats.waitingRequests > finished ? nowMs : undefined;
    if (cost > 0) this.#samples = [...this.#samples.slice(1 - sampleCount), { stepMs, costMs: stepMs / cost }];
  }

  /** Undefined before the first step. */
  read(active: ReadonlyMap<string, ActiveRequest>): WorkerPace | undefined {
    if (this.#samples.length === 0) return undefined;
    const remainingCost = [...active.values()].reduce((sum, request) => sum + request.remainingCost, 0);
    return {
      costMs: rangeOf(this.#samples.map(({ costMs }) => costMs)),
      stepMs: rangeOf(this.#samples.map(({ stepMs }) => stepMs)),
      remainingCost,
    };
  }
}

function rangeOf(values: readonly number[]): MeasuredRange {
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  return { fast: at(0.1), slow: at(0.9) };
}
