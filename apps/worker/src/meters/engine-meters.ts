import type { WorkerPace } from '@darkroom/core';
import type { Executor, ExecutorEvent } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import { EngineWatch, type EngineWatchOptions } from '../engine/engine-watch.ts';
import type { ActiveRequest } from '../request/active-request.ts';
import { PaceMeter } from './pace-meter.ts';
import { StepMeter } from './step-meter.ts';

/** All that listens to what an engine says of its work: how fast it is, what it did, and whether it hangs. */
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

  /** How fast it is. Ends an engine that hangs. To be called again and again. */
  read(active: ReadonlyMap<string, ActiveRequest>, executor: Executor, log: Logger): WorkerPace | undefined {
    const pace = this.#pace.read(active);
    this.watch.endIfHung(executor, { pace, log });
    return pace;
  }
}
