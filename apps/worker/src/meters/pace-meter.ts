import type { MeasuredRange, WorkerPace } from '@darkroom/core';
import { type ExecutorEvent, isRequestEnd } from '@darkroom/executor';
import type { ActiveRequest } from '../request/active-request.ts';

/** Steps that are remembered: enough for a percentile, few enough to follow a change of load within seconds. */
const sampleCount = 64;
/** Events after which rows are gone that no step has finished. */
const endsEarly: ReadonlySet<ExecutorEvent['type']> = new Set(['request-canceled', 'request-failed', 'engine-lost']);

/** Measures an engine's steps, by the wall, so that what comes between two of them (decoding, above all) counts too. */
export class PaceMeter {
  #samples: { stepMs: number; costMs: number }[] = [];
  /** Of the last outputs: how far they came, of as far as they might have come. */
  #shares: number[] = [];
  /** When the last step ended, if the next one followed at once. */
  #lastStepAtMs: number | undefined;
  /** Time of steps that brought nobody further, such as those that read a prompt: it is the next one's. */
  #unpaidMs = 0;

  /** The events of one step, before the requests have taken note of them. */
  observe(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>, nowMs: number): void {
    this.#step(events, active, nowMs);
    for (const event of events)
      if (event.type === 'output') this.#end(active.get(event.requestId)?.shareOf(event.index));
    // Rows may have left in the middle of things, so it is not known how busy the engine is; or nothing is left to do.
    const ended = new Set(events.filter((event) => isRequestEnd(event)).map(({ requestId }) => requestId));
    const isIdle =
      ended.size > 0 && ![...active].some(([token, { ending }]) => !ended.has(token) && ending === undefined);
    if (isIdle || events.some(({ type }) => endsEarly.has(type))) {
      this.#lastStepAtMs = undefined;
      this.#unpaidMs = 0;
    }
  }

  #end(share: number | undefined): void {
    if (share !== undefined) this.#shares = [...this.#shares.slice(1 - sampleCount), share];
  }

  #step(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>, nowMs: number): void {
    const stats = events.findLast((event) => event.type === 'stats');
    if (stats === undefined) return;
    const stepMs = (this.#lastStepAtMs === undefined ? stats.stepMs : nowMs - this.#lastStepAtMs) + this.#unpaidMs;
    this.#lastStepAtMs = nowMs;
    const { units, cost, rows } = advanceOf(events, active);
    this.#unpaidMs = cost > 0 ? 0 : stepMs;
    if (cost > 0)
      this.#samples = [
        ...this.#samples.slice(1 - sampleCount),
        { stepMs: (stepMs * rows) / units, costMs: stepMs / cost },
      ];
  }

  /** Undefined before the first step. */
  read(active: ReadonlyMap<string, ActiveRequest>): WorkerPace | undefined {
    if (this.#samples.length === 0) return undefined;
    const remainingCost = [...active.values()].reduce((sum, request) => sum + request.remainingCost, 0);
    return {
      costMs: rangeOf(this.#samples.map(({ costMs }) => costMs)),
      stepMs: rangeOf(this.#samples.map(({ stepMs }) => stepMs)),
      ...(this.#shares.length > 0 && { share: rangeOf(this.#shares) }),
      remainingCost,
    };
  }
}

/** How much further all rows are together, and how many of them said so: text says it with what it says, pictures by themselves. */
function advanceOf(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>) {
  const rows = new Map<string, { units: number; cost: number }>();
  for (const event of events) {
    if (event.type !== 'progress' && event.type !== 'delta' && event.type !== 'snapshot') continue;
    const { requestId, index, done } = event;
    const request = active.get(requestId);
    if (request === undefined || done === undefined) continue;
    const total = event.type === 'progress' ? event.total : undefined;
    const advance = request.advanceOf({ index, done, ...(total !== undefined && { total }) });
    const known = rows.get(`${requestId} ${index}`);
    if (known === undefined || advance.cost > known.cost) rows.set(`${requestId} ${index}`, advance);
  }
  const all = [...rows.values()];
  const sum = (of: 'units' | 'cost'): number => all.reduce((total, advance) => total + advance[of], 0);
  return { rows: all.length, units: sum('units'), cost: sum('cost') };
}

function rangeOf(values: readonly number[]): MeasuredRange {
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  return { fast: at(0.1), slow: at(0.9) };
}
