import type { MeasuredRange, WorkerPace } from '@darkroom/core';
import { type ExecutorEvent, isRequestEnd } from '@darkroom/executor';
import type { ActiveRequest } from '../request/active-request.ts';

/** Steps that are remembered: enough for a percentile, few enough to follow a change of load within seconds. */
const sampleCount = 64;
/** Events after which rows are gone that no step has finished. */
const endsEarly: ReadonlySet<ExecutorEvent['type']> = new Set(['request-canceled', 'request-failed', 'engine-lost']);

/** Of an executor that has no steps: so long a time counts as one, ms. Rows that are served side by side have all come further by then. */
const windowMs = 250;

/** Measures an engine's steps, by the wall, so that what comes between two of them (decoding, above all) counts too. */
export class PaceMeter {
  #samples: { stepMs: number; costMs: number }[] = [];
  /** Of the last outputs: how far they came, of as far as they might have come. */
  #shares: number[] = [];
  /** When the last step ended, if the next one followed at once. */
  #lastStepAtMs: number | undefined;
  /** Time of steps that brought nobody further, such as those that read a prompt: it is the next one's. */
  #unpaidMs = 0;
  #hasSteps = false;
  /** Of an executor without steps: who came how much further since the window began. */
  #window: { startMs: number; advances: Map<string, Advance> } | undefined;

  /** There is work. */
  submitted(nowMs: number): void {
    this.#window ??= { startMs: nowMs, advances: new Map() };
  }

  /** The events of some steps, before the requests have taken note of them. */
  observe(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>, nowMs: number): void {
    this.#step(events, active, nowMs);
    if (!this.#hasSteps) this.#flow(events, active, nowMs);
    for (const event of events)
      if (event.type === 'output') this.#end(active.get(event.requestId)?.shareOf(event.index));
    // Rows may have left in the middle of things, so it is not known how busy the engine is; or nothing is left to do.
    const ended = new Set(events.filter((event) => isRequestEnd(event)).map(({ requestId }) => requestId));
    const isIdle =
      ended.size > 0 && ![...active].some(([token, { ending }]) => !ended.has(token) && ending === undefined);
    if (isIdle && this.#window !== undefined) this.#sample(nowMs - this.#window.startMs, this.#window.advances);
    if (isIdle || events.some(({ type }) => endsEarly.has(type))) {
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

  /** What comes while nobody says when a step ends. */
  #flow(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>, nowMs: number): void {
    this.submitted(nowMs);
    const { startMs, advances } = this.#window!;
    for (const [row, { units, cost }] of advancesIn(events, active)) {
      const before = advances.get(row) ?? { units: 0, cost: 0 };
      advances.set(row, { units: before.units + units, cost: before.cost + cost });
    }
    if (nowMs - startMs >= windowMs && this.#sample(nowMs - startMs, advances))
      this.#window = { startMs: nowMs, advances: new Map() };
  }

  /** @returns false if nobody came further. */
  #sample(ms: number, advances: ReadonlyMap<string, Advance>): boolean {
    const sum = (of: keyof Advance): number => [...advances.values()].reduce((total, each) => total + each[of], 0);
    const [units, cost] = [sum('units'), sum('cost')];
    if (cost === 0) return false;
    const sample = { stepMs: (ms * advances.size) / units, costMs: ms / cost };
    this.#samples = [...this.#samples.slice(1 - sampleCount), sample];
    return true;
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

/** By how much a row is further. */
interface Advance {
  units: number;
  cost: number;
}

/** How much further rows are, of those that said so: text says it with what it says, pictures by themselves. */
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
