import type { ExecutorEvent } from '@darkroom/executor';
import type { Metrics } from '@darkroom/service';
import type { WriteOutcome } from '@darkroom/store';
import { createWorkerSeries, type WorkerSeries } from './worker-series.ts';

export interface StepMeterOptions {
  metrics: Metrics;
  model: string;
  /** Rows that can share a step. */
  capacity: number;
}

/** Shapes with a label of their own; clients choose shapes, and must not be able to make series without end. */
const mostShapes = 32;

type LeaveReason = 'done' | 'canceled' | 'failed' | 'engine_lost';

/** Why a worker takes a request out of its engine; the last of these are what a refused write was told. */
export type DropReason = 'buried' | 'canceled' | Extract<WriteOutcome, 'canceling' | 'lost' | 'ended'>;

/** Those that mean that it is somebody else's by now, as labels. */
const lossLabels: Readonly<Partial<Record<DropReason, string>>> = {
  buried: 'buried',
  lost: 'refused',
};

/** Whether it is somebody else's by now. */
export function isLoss(reason: DropReason): boolean {
  return lossLabels[reason] !== undefined;
}

/** Counts what an engine does, from what it says anyway. */
export class StepMeter {
  readonly #options: StepMeterOptions;
  readonly #series: WorkerSeries;
  readonly #shapes = new Set<string>();
  /** Of each request in the engine, the rows that have taken a step there. */
  readonly #inside = new Map<string, Set<number>>();

  constructor(options: StepMeterOptions) {
    this.#options = options;
    this.#series = createWorkerSeries(options.metrics);
    const { model } = options;
    this.#series.capacity.set({ model }, options.capacity);
    // Series that are there from the beginning: Prometheus sees no increase in one that begins with 1.
    this.#series.joined.inc({ model }, 0);
    this.#series.enginesLost.inc({ model }, 0);
    this.#series.mistakenDeaths.inc({ model }, 0);
    for (const reason of ['done', 'canceled', 'failed', 'engine_lost'] as const) this.#leave(reason, 0);
    for (const reason of Object.values(lossLabels)) this.#series.leasesLost.inc({ model, reason }, 0);
  }

  observe(events: readonly ExecutorEvent[]): void {
    for (const event of events) this.#observe(event);
    let rows = 0;
    for (const indexes of this.#inside.values()) rows += indexes.size;
    this.#series.rows.set({ model: this.#options.model }, rows);
  }

  /** A request is taken out of the engine before its end. */
  dropped(why: DropReason): void {
    const reason = lossLabels[why];
    if (reason !== undefined) this.#series.leasesLost.inc({ model: this.#options.model, reason });
  }

  /** It was buried, and lives. */
  takenForDead(): void {
    this.#series.mistakenDeaths.inc({ model: this.#options.model });
  }

  #observe(event: ExecutorEvent): void {
    const { model } = this.#options;
    switch (event.type) {
      case 'stats':
        return this.#step(event);
      case 'progress':
      case 'delta':
      case 'snapshot':
        return this.#join(event.requestId, event.index);
      case 'output':
        this.#join(event.requestId, event.index);
        this.#inside.get(event.requestId)?.delete(event.index);
        return this.#leave('done', 1);
      case 'request-done':
        this.#inside.delete(event.requestId);
        return;
      case 'request-canceled':
        return this.#leaveAll('canceled', [event.requestId]);
      case 'request-failed':
        return this.#leaveAll('failed', [event.requestId]);
      case 'engine-lost':
        this.#series.enginesLost.inc({ model });
        return this.#leaveAll('engine_lost', [...this.#inside.keys()]);
      case 'row-releasing':
      case 'checkpoint':
        return;
    }
  }

  #step({ shapeKey, rows, modelRows, stepMs }: Extract<ExecutorEvent, { type: 'stats' }>): void {
    const { model, capacity } = this.#options;
    if (this.#shapes.size < mostShapes) this.#shapes.add(shapeKey);
    const shape = this.#shapes.has(shapeKey) ? shapeKey : 'other';
    this.#series.stepSeconds.observe({ model, shape }, stepMs / 1000);
    this.#series.occupancy.observe({ model }, rows / capacity);
    this.#series.rowSteps.inc({ model }, rows);
    this.#series.modelRows.inc({ model }, modelRows);
  }

  #join(requestId: string, index: number): void {
    const indexes = this.#inside.get(requestId) ?? new Set<number>();
    this.#inside.set(requestId, indexes);
    if (indexes.has(index)) return;
    indexes.add(index);
    this.#series.joined.inc({ model: this.#options.model });
  }

  #leaveAll(reason: LeaveReason, requestIds: readonly string[]): void {
    for (const requestId of requestIds) {
      this.#leave(reason, this.#inside.get(requestId)?.size ?? 0);
      this.#inside.delete(requestId);
    }
  }

  #leave(reason: LeaveReason, rows: number): void {
    this.#series.left.inc({ model: this.#options.model, reason }, rows);
  }
}
