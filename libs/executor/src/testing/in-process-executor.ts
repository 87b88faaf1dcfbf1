import { type ModelCard, type Pipeline, type PipelineRow, type RowRequest } from '@darkroom/core';
import { Engine } from '../engine/engine.ts';
import type { ExecutorListener } from '../executor-event.ts';
import { type Executor, type ExecutorHealth, type ShutdownOptions, unavailable } from '../executor.ts';

export interface InProcessExecutorOptions<Row extends PipelineRow> {
  /** Called by `start`. A function, so that only its callers load ONNX Runtime. */
  loadPipeline: () => Promise<Pipeline<Row>>;
  /** Capacity in slots; rows beyond it wait. */
  maxSlots: number;
  /** Emits a checkpoint of each row every this many of its steps; 0 disables them. */
  checkpointEvery?: number;
  onEvents: ExecutorListener;
}

/** Runs the engine in the caller's process, whose event loop each step blocks: for tests and benchmarks. */
export class InProcessExecutor<Row extends PipelineRow> implements Executor {
  readonly #options: InProcessExecutorOptions<Row>;
  #pipeline: Pipeline<Row> | undefined;
  #engine: Engine<Row> | undefined;

  constructor(options: InProcessExecutorOptions<Row>) {
    this.#options = options;
  }

  async start(): Promise<ModelCard> {
    if (this.#engine !== undefined) throw unavailable('executor.start', 'the engine is already running');
    const { loadPipeline, ...options } = this.#options;
    this.#pipeline = await loadPipeline();
    this.#engine = new Engine({ ...options, pipeline: this.#pipeline });
    return this.#pipeline.card;
  }

  submit(requests: readonly RowRequest[]): void {
    if (this.#engine !== undefined) return this.#engine.submit(requests);
    throw unavailable('executor.submit', 'the engine is not running');
  }

  cancel(requestId: string): void {
    this.#engine?.cancel(requestId);
  }

  /** Does nothing: a hung engine also blocks this process. */
  kill(): void {}

  checkHealth(): Promise<ExecutorHealth> {
    const { slots, waitingRequests } = this.#engine?.status ?? { slots: 0, waitingRequests: 0 };
    return Promise.resolve({ isHealthy: this.#engine !== undefined, slots, waitingRequests, latencyMs: 0 });
  }

  async shutdown(options?: ShutdownOptions): Promise<void> {
    const engine = this.#engine;
    const pipeline = this.#pipeline;
    this.#engine = undefined;
    this.#pipeline = undefined;
    await engine?.stop(options);
    await pipeline?.dispose();
  }
}
