import type { TokenCounts } from '@darkroom/core';
import { type EventOf, type ExecutorEvent, isRequestEnd } from '@darkroom/executor';
import type { Metrics } from '@darkroom/service';
import { type DropReason, lossLabels } from '../request/drop-reason.ts';
import { workerSeriesOf } from './worker-series.ts';

/** Max. number of shapes with their own label: clients choose shapes and must not create unlimited series. */
const maxShapes = 32;

const leaveReasons = {
  output: 'done',
  'request-done': 'done',
  'request-canceled': 'canceled',
  'request-failed': 'failed',
  'request-lost': 'lost',
  'engine-lost': 'engine_lost',
} as const;

/** Updates the metrics of an engine from its events. */
export class StepMeter {
  readonly #model: string;
  #capacity: number;
  readonly #series: ReturnType<typeof workerSeriesOf>;
  readonly #shapes = new Set<string>();
  /** Rows that have taken a step in the engine: `<request> <index> `; the trailing space keeps prefixes unambiguous. */
  readonly #rows = new Set<string>();

  constructor({ metrics, model, capacity }: { metrics: Metrics; model: string; capacity: number }) {
    this.#model = model;
    this.#capacity = capacity;
    this.#series = workerSeriesOf(metrics);
    this.setCapacity(capacity);
    // Create the series at 0: Prometheus sees no increase in a series that begins with 1.
    this.#series.joined.inc({ model }, 0);
    this.clear();
    this.#count({ read: 0, cached: 0, written: 0, calls: 0 });
    this.#series.enginesLost.inc({ model }, 0);
    this.#series.mistakenDeaths.inc({ model }, 0);
    for (const reason of Object.values(leaveReasons)) this.#series.left.inc({ model, reason }, 0);
    for (const reason of Object.values(lossLabels)) this.#series.leasesLost.inc({ model, reason }, 0);
  }

  /** Sets the gauges of the loaded model to 0: none is loaded. */
  clear(): void {
    this.#series.rows.set({ model: this.#model }, 0);
    this.filesChanged(0);
  }

  /** Sets the capacity that the engine reports. */
  setCapacity(capacity: number): void {
    this.#capacity = capacity;
    this.#series.capacity.set({ model: this.#model }, capacity);
  }

  observe(events: readonly ExecutorEvent[]): void {
    for (const event of events) this.#observe(event);
    this.#series.rows.set({ model: this.#model }, this.#rows.size);
  }

  /** Counts a request taken out of the engine before its end. */
  dropped(why: DropReason): void {
    const reason = lossLabels[why];
    if (reason !== undefined) this.#series.leasesLost.inc({ model: this.#model, reason });
  }

  /** Sets the number of model files replaced since the load. */
  filesChanged(count: number): void {
    this.#series.filesChanged.set({ model: this.#model }, count);
  }

  /** Counts that this worker was reaped while alive. */
  reapedAlive(): void {
    this.#series.mistakenDeaths.inc({ model: this.#model });
  }

  #observe(event: ExecutorEvent): void {
    if (event.type === 'stats') return this.#step(event);
    if (event.type === 'engine-lost') {
      this.#series.enginesLost.inc({ model: this.#model });
      return this.#leave(event.type, '');
    }
    if (isRequestEnd(event)) return this.#leave(event.type, `${event.requestId} `);
    if (event.type === 'row-releasing') return;
    const row = `${event.requestId} ${event.index} `;
    if (!this.#rows.has(row)) this.#series.joined.inc({ model: this.#model });
    this.#rows.add(row);
    if (event.type === 'output') this.#leave(event.type, row);
  }

  #step({ shapeKey, rows, modelRows, stepMs, tokens }: EventOf<'stats'>): void {
    const model = this.#model;
    if (this.#shapes.size < maxShapes) this.#shapes.add(shapeKey);
    const shape = this.#shapes.has(shapeKey) ? shapeKey : 'other';
    this.#series.stepSeconds.observe({ model, shape }, stepMs / 1000);
    this.#series.occupancy.observe({ model }, rows / this.#capacity);
    this.#series.rowSteps.inc({ model }, rows);
    this.#series.modelRows.inc({ model }, modelRows);
    if (tokens !== undefined) this.#count(tokens);
  }

  #count({ read, cached, written, calls }: TokenCounts): void {
    const model = this.#model;
    this.#series.promptTokens.inc({ model }, read);
    this.#series.cachedPromptTokens.inc({ model }, cached);
    this.#series.writtenTokens.inc({ model }, written);
    this.#series.textCalls.inc({ model }, calls);
  }

  #leave(why: keyof typeof leaveReasons, rows: string): void {
    const leaving = [...this.#rows].filter((row) => row.startsWith(rows));
    for (const row of leaving) this.#rows.delete(row);
    this.#series.left.inc({ model: this.#model, reason: leaveReasons[why] }, leaving.length);
  }
}
