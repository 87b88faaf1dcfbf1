import type { WorkerThroughput } from '@darkroom/core';
import type { Executor, ExecutorEvent } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import { EngineWatch, type EngineWatchOptions } from '../engine/engine-watch.ts';
import type { ActiveRequest } from '../request/active-request.ts';
import { PaceMeter } from './pace-meter.ts';
import { StepMeter } from './step-meter.ts';

/** Everything derived from an engine's events: throughput, metrics and the detection of hangs. */
export class EngineMeters {
  readonly steps: StepMeter;
  readonly watch: EngineWatch;
  readonly #pace = new PaceMeter();

  constructor(options: ConstructorParameters<typeof StepMeter>[0] & EngineWatchOptions) {
    this.steps = new StepMeter(options);
    this.watch = new EngineWatch(options);
  }

  observe(events: readonly ExecutorEvent[], active: ReadonlyMap<string, ActiveRequest>): void {
    this.#pace.observe(events, active, performance.now());
    this.steps.observe(events);
    this.watch.observe(events);
  }

  submitted(token: string): void {
    this.#pace.submitted(performance.now());
    this.watch.submitted(token);
  }

  /** Returns the throughput. Kills a hung engine. Call on every tick. */
  read(active: ReadonlyMap<string, ActiveRequest>, executor: Executor, log: Logger): WorkerThroughput | undefined {
    const pace = this.#pace.read(active);
    this.watch.endIfHung(executor, { pace, log });
    return pace;
  }
}
