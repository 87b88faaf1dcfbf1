import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DarkroomError, type ModelCard, type PipelineRow, type RowRequest, withTimeLimit } from '@darkroom/core';
import { Engine } from '../engine/engine.ts';
import { type ExecutorListener, isRequestEnd } from '../executor-event.ts';
import { type Executor, type ExecutorHealth, type ShutdownOptions, unavailable } from '../executor.ts';
import { findModule, type ModuleSetting } from '../module/find-module.ts';
import { readCard, readSlots } from '../module/read-card.ts';
import { EngineChild, type EngineChildOptions } from './engine-child.ts';
import { EnginePipeline } from './engine-pipeline.ts';

export interface PythonExecutorOptions extends EngineChildOptions {
  /** Emits a checkpoint of each row every this many of its steps; 0 disables them. */
  checkpointEvery?: number;
  /** A tenth of the max. duration of a start, ms. */
  timeoutMs?: number;
  /** Interval between health checks, ms. */
  checkEveryMs?: number;
  onEvents: ExecutorListener;
}

/** Timeout of `checkHealth`. A step blocks the engine, so it exceeds the slowest step. */
const healthTimeoutMs = 30_000;
const startFactor = 10;
/** Max time for the current step on `shutdown`, before the engine is killed. */
const shutdownTimeoutMs = 10_000;
const minVersion = [3, 9] as const;

/**
 * Runs an engine in Python in its own process. The rows are stepped from here, so that scheduling, cancels and
 * checkpoints are those of the built-in engine.
 */
export class PythonExecutor implements Executor {
  readonly #options: Required<Omit<PythonExecutorOptions, 'maxDataBytes' | 'environment'>> & EngineChildOptions;
  /** Creation time of the model card, in seconds since the epoch. */
  readonly #created = Math.floor(Date.now() / 1000);
  /** Submitted requests that have not ended. */
  readonly #open = new Set<string>();
  /** Aborts when the executor stops or loses its engine; undefined unless started or starting. */
  #life: AbortController | undefined;
  #child: EngineChild | undefined;
  #engine: Engine<PipelineRow> | undefined;
  #methods: readonly string[] = [];
  #maxSlots = 1;

  constructor(options: PythonExecutorOptions) {
    this.#options = { checkpointEvery: 0, timeoutMs: 60_000, checkEveryMs: 5000, ...options };
  }

  get #setting(): ModuleSetting {
    return { name: 'MODULE', module: this.#options.module };
  }

  /** The capacity that the engine reported at start. */
  get maxSlots(): number {
    return this.#maxSlots;
  }

  get enginePid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<ModelCard> {
    if (this.#life !== undefined) throw unavailable('executor.start', 'the engine is already running');
    const life = new AbortController();
    this.#life = life;
    try {
      await checkPython(this.#options.python);
      const path = fileURLToPath(await findModule(this.#setting));
      life.signal.throwIfAborted();
      const limitMs = startFactor * this.#options.timeoutMs;
      return await withTimeLimit(limitMs, life.signal, (signal) => this.#load(path, life, signal));
    } catch (error) {
      // A killed process must have exited first, to free the device memory that it holds.
      await this.#child?.ended;
      if (this.#life === life) this.#life = undefined;
      throw life.signal.aborted ? unavailable('executor.start', 'it was stopped before it was ready') : error;
    }
  }

  submit(requests: readonly RowRequest[]): void {
    if (this.#engine === undefined) throw unavailable('executor.submit', 'the engine is not running');
    for (const { id } of requests) this.#open.add(id);
    this.#engine.submit(requests);
  }

  cancel(requestId: string): void {
    this.#engine?.cancel(requestId);
  }

  kill(): void {
    this.#child?.kill();
  }

  async checkHealth(): Promise<ExecutorHealth> {
    const startedAtMs = performance.now();
    const { slots, waitingRequests } = this.#engine?.status ?? { slots: 0, waitingRequests: 0 };
    const isHealthy = this.#engine !== undefined && (await this.#probe()) === undefined;
    return { isHealthy, slots, waitingRequests, latencyMs: performance.now() - startedAtMs };
  }

  async rpc(method: string, parameters: Readonly<Record<string, unknown>>): Promise<unknown> {
    if (this.#child === undefined || this.#engine === undefined)
      throw unavailable('executor.rpc', 'the engine is not running');
    if (!this.#methods.includes(method)) {
      const names = this.#methods.join(', ') || 'none';
      const message = `method is ${JSON.stringify(method)}, expected one of the engine's: ${names}`;
      throw new DarkroomError('invalid_request', 'executor.rpc', message);
    }
    return this.#child.call('rpc', { method, parameters });
  }

  async shutdown(options: ShutdownOptions = {}): Promise<void> {
    const [engine, child] = [this.#engine, this.#child];
    this.#engine = undefined;
    this.#open.clear();
    this.#life?.abort();
    if (engine === undefined) child?.kill();
    else if (child !== undefined) {
      // The events of the stop, such as checkpoints, are still delivered.
      const timer = setTimeout(() => child.kill(), shutdownTimeoutMs);
      await engine.stop(options);
      clearTimeout(timer);
      await child.close();
    }
    await child?.ended;
    this.#life = undefined;
  }

  async #load(path: string, life: AbortController, signal: AbortSignal): Promise<ModelCard> {
    const { model, checkpointEvery, onEvents } = this.#options;
    const child = new EngineChild({ ...this.#options, module: path });
    this.#child = child;
    void child.ended.then(({ how }) => this.#lose(child, how));
    const { card, slots, methods } = await child.ready(this.#setting, {
      signal,
      limit: 'ten times ENGINE_TIMEOUT_S',
      read: (ready) => ({
        card: readCard(ready.card, { id: model, created: this.#created }),
        slots: readSlots(ready.slots),
        methods: ready.methods,
      }),
    });
    const engine = new Engine({
      pipeline: new EnginePipeline(child, card),
      maxSlots: slots,
      checkpointEvery,
      onEvents: (events) => {
        // The rows of an ended process fail, and are reported as lost with it.
        if (child.how !== undefined) return;
        for (const event of events) if (isRequestEnd(event)) this.#open.delete(event.requestId);
        onEvents(events);
      },
    });
    this.#maxSlots = slots;
    this.#methods = methods;
    this.#engine = engine;
    void this.#watch(life);
    return card;
  }

  /** Checks the health periodically, and ends an engine that reports an error. A hung one is ended by the worker. */
  async #watch({ signal }: AbortController): Promise<void> {
    for (;;) {
      await delay(this.#options.checkEveryMs, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      const reason = await this.#probe();
      if (reason !== undefined && reason !== 'timeout' && !signal.aborted) this.#child?.kill(reason);
    }
  }

  /** Returns why the health check failed; undefined if the engine is healthy. */
  async #probe(): Promise<string | undefined> {
    const answer = this.#child?.call('health', {}).then(
      () => undefined,
      (error: Error) => error.message,
    );
    return Promise.race([answer, delay(healthTimeoutMs, 'timeout', { ref: false })]);
  }

  #lose(child: EngineChild, how: string): void {
    if (this.#child !== child) return;
    const wasReady = this.#engine !== undefined;
    const requestIds = [...this.#open];
    this.#child = undefined;
    this.#engine = undefined;
    this.#open.clear();
    if (!wasReady) return;
    this.#life?.abort();
    this.#life = undefined;
    this.#options.onEvents([{ type: 'engine-lost', message: `the engine ${how}`, requestIds }]);
  }
}

/** @throws DarkroomError if the program is no Python of a supported version. */
async function checkPython(python: string): Promise<void> {
  const expected = `a Python of version ${minVersion.join('.')} or later`;
  try {
    const program = 'import sys; print(*sys.version_info[:2])';
    const { stdout } = await promisify(execFile)(python, ['-c', program], { timeout: 30_000 });
    const [major = 0, minor = 0] = stdout.trim().split(' ').map(Number);
    if (major === minVersion[0] && minor >= minVersion[1]) return;
    throw new Error(`it has version ${major}.${minor}`);
  } catch (error) {
    const [reason] = (error as Error).message.split('\n');
    throw new DarkroomError('internal', 'executor.start', `PYTHON is ${python}, expected ${expected}: ${reason}`);
  }
}
