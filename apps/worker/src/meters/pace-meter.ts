import type { MeasuredRange, WorkerThroughput } from '@darkroom/core';
import { type ExecutorEvent, isRequestEnd } from '@darkroom/executor';
import type { ActiveRequest } from '../request/active-request.ts';

/** Samples kept: enough for a percentile, few enough to follow a change of load within seconds. */
const sampleCount = 64;
/** Events after which rows are gone without a finished step. */
const interruptions: ReadonlySet<ExecutorEvent['type']> = new Set([
  'request-canceled',
  'request-failed',
  'engine-lost',
]);

/** Measuring window for an executor without steps, ms; rows served side by side have all advanced by then. */
const windowMs = 250;

/** Measures an engine's step time by wall clock, so that work between two steps (mostly decoding) counts too. */
export class PaceMeter {
  #samples: { stepMs: number; costMs: number }[] = [];
  /** Length of the last outputs as a fraction of the maximum length. */
  #shares: number[] = [];
  /** End of the last step, if the next one follows at once. */
  #lastStepAtMs: number | undefined;
  /** Time of steps that advanced no row, such as reading a prompt; it is added to the next step. */
  #unpaidMs = 0;
  #hasSteps = false;
  #window: Window | undefined;

  /** Starts the window if none is open. */
  submitted(nowMs: number): Window {
    return (this.#window ??= { startMs: nowMs, advances: new Map() });
  }

  /** Takes the events of some steps. Call before the requests observe them. */
  observe(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>, nowMs: number): void {
    this.#step(events, active, nowMs);
    if (!this.#hasSteps) this.#flow(events, active, nowMs);
    for (const event of events)
      if (event.type === 'output') this.#end(active.get(event.requestId)?.shareOf(event.index));
    // Rows may have left in mid-step, so the load is unknown; or no request is left.
    const ended = new Set(events.filter((event) => isRequestEnd(event)).map(({ requestId }) => requestId));
    const isIdle =
      ended.size > 0 && ![...active].some(([token, { ending }]) => !ended.has(token) && ending === undefined);
    if (isIdle && this.#window !== undefined) this.#sample(nowMs - this.#window.startMs, this.#window.advances);
    if (isIdle || events.some(({ type }) => interruptions.has(type))) {
      this.#lastStepAtMs = undefined;
      this.#unpaidMs = 0;
      this.#window = undefined;
    }
  }

  #end(share: number | undefined): void {
    if (share !== undefined) this.#shares = [...this.#shares.slice(1 - sampleCount), share];
  }

  #step(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>, nowMs: number): void {
    const steps = events.filter((event) => event.type === 'stats');
    if (steps.length === 0) return;
    this.#hasSteps = true;
    const ownMs = steps.reduce((sum, { stepMs }) => sum + stepMs, 0);
    const stepsMs = (this.#lastStepAtMs === undefined ? ownMs : nowMs - this.#lastStepAtMs) + this.#unpaidMs;
    this.#lastStepAtMs = nowMs;
    this.#unpaidMs = this.#sample(stepsMs, advancesIn(events, active)) ? 0 : stepsMs;
  }

  /** Collects the advances of rows when the executor reports no steps. */
  #flow(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>, nowMs: number): void {
    const { startMs, advances } = this.submitted(nowMs);
    for (const [row, { units, cost }] of advancesIn(events, active)) {
      const before = advances.get(row) ?? { units: 0, cost: 0 };
      advances.set(row, { units: before.units + units, cost: before.cost + cost });
    }
    if (nowMs - startMs >= windowMs && this.#sample(nowMs - startMs, advances))
      this.#window = { startMs: nowMs, advances: new Map() };
  }

  /** @returns false if no row advanced. */
  #sample(ms: number, advances: ReadonlyMap<string, Advance>): boolean {
    const sum = (of: keyof Advance): number => [...advances.values()].reduce((total, each) => total + each[of], 0);
    const [units, cost] = [sum('units'), sum('cost')];
    if (cost === 0) return false;
    const sample = { stepMs: (ms * advances.size) / units, costMs: ms / cost };
    this.#samples = [...this.#samples.slice(1 - sampleCount), sample];
    return true;
  }

  /** @returns undefined before the first step. */
  read(active: ReadonlyMap<string, ActiveRequest>): WorkerThroughput | undefined {
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

interface Window {
  readonly startMs: number;
  readonly advances: Map<string, Advance>;
}

/** How far a row has advanced. */
interface Advance {
  units: number;
  cost: number;
}

/** Returns the advances of the rows in these events: text rows report them with text, images as progress. */
function advancesIn(
  events: readonly ExecutorEvent[],
  active: ReadonlyMap<string, ActiveRequest>,
): Map<string, Advance> {
  const rows = new Map<string, Advance>();
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
  return rows;
}

function rangeOf(values: readonly number[]): MeasuredRange {
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  return { fast: at(0.1), slow: at(0.9) };
}
