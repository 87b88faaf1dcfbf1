import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DarkroomError, type ModelCard, type PipelineComponent, type RowRequest } from '@darkroom/core';
import { endOfChild } from './end-of-child.ts';
import type { EngineProcessOptions, MessageFromEngine, MessageToEngine } from './engine-message.ts';
import { forkChild } from './fork-child.ts';
import { type ExecutorListener, isRequestEnd } from '../executor-event.ts';
import type { EngineStatus, Executor, ExecutorHealth, ShutdownOptions } from '../executor.ts';

export interface ProcessExecutorOptions extends EngineProcessOptions {
  onEvents: ExecutorListener;
  /** Hears what each part of the model runs on, and what the model can do, before `start` resolves. */
  onLoaded?: (components: readonly PipelineComponent[], card: ModelCard) => void;
  /** Of the engine's process; that of this one if absent. */
  environment?: Record<string, string | undefined> | undefined;
}

/** How long `checkHealth` waits; a step blocks the engine, so longer than the slowest. */
const healthTimeoutMs = 30_000;
/** How long `shutdown` waits for the step under way before it kills the engine. */
const shutdownTimeoutMs = 10_000;

// Always the built entry: Node runs no TypeScript, so tests of the sources need `npm run build` before them.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../dist/process' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/engine-process.js`, import.meta.url));

/** Runs the engine in a process of its own, the default: `session.run` blocks only that one's event loop. */
export class ProcessExecutor implements Executor {
  readonly #options: ProcessExecutorOptions;
  /** Submitted and not ended. */
  readonly #open = new Set<string>();
  /** Those who have asked the engine how it is, in the order of its answers. */
  readonly #asking: ((status: EngineStatus | undefined) => void)[] = [];
  #child: ChildProcess | undefined;
  /** Resolves when the child is gone. */
  #ended: Promise<string> = Promise.resolve('was not started');
  #isReady = false;

  constructor(options: ProcessExecutorOptions) {
    this.#options = options;
  }

  get enginePid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<ModelCard> {
    if (this.#child !== undefined) throw unavailable('executor.start', 'the engine is already running');
    const { model, maxSlots, checkpointEvery = 0, onLoaded, environment } = this.#options;
    const child = forkChild(entry, environment);
    this.#child = child;
    this.#ended = this.#watch(child);
    const started = new Promise<ModelCard>((resolve, reject) => {
      let failure: DarkroomError | undefined;
      child.on('message', (message: MessageFromEngine) => {
        if (message.type === 'ready') {
          this.#isReady = true;
          onLoaded?.(message.components, message.card);
          resolve(message.card);
        } else if (message.type === 'start-failed') failure = new DarkroomError(...message.failure);
        else this.#receive(message);
      });
      // Only when the process is gone, so that the caller may start again at once.
      void this.#ended.then((how) => reject(failure ?? unavailable('executor.start', `the engine ${how}`)));
    });
    this.#send({ type: 'start', options: { model, maxSlots, checkpointEvery } });
    return started;
  }

  submit(requests: readonly RowRequest[]): void {
    if (!this.#isReady) throw unavailable('executor.submit', 'the engine is not running');
    for (const { id } of requests) this.#open.add(id);
    this.#send({ type: 'submit', requests });
  }

  cancel(requestId: string): void {
    if (this.#open.has(requestId)) this.#send({ type: 'cancel', requestId });
  }

  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  async checkHealth(): Promise<ExecutorHealth> {
    const startedAtMs = performance.now();
    const status = this.#isReady ? await this.#ask() : undefined;
    const latencyMs = performance.now() - startedAtMs;
    return { isHealthy: status !== undefined, slots: 0, waitingRequests: 0, ...status, latencyMs };
  }

  async shutdown({ shouldCheckpoint = false }: ShutdownOptions = {}): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    // A model still loading has nothing to give back.
    if (this.#isReady) this.#send({ type: 'shutdown', shouldCheckpoint });
    else child.kill('SIGKILL');
    this.#isReady = false;
    this.#open.clear();
    const timer = setTimeout(() => child.kill('SIGKILL'), shutdownTimeoutMs);
    await this.#ended;
    clearTimeout(timer);
  }

  /** Undefined when it does not answer in time, or ends. */
  #ask(): Promise<EngineStatus | undefined> {
    const answer = new Promise<EngineStatus | undefined>((resolve) => this.#asking.push(resolve));
    this.#send({ type: 'health' });
    return Promise.race([answer, delay(healthTimeoutMs, undefined, { ref: false })]);
  }

  #receive(message: Exclude<MessageFromEngine, { type: 'ready' | 'start-failed' }>): void {
    if (message.type === 'health') return this.#asking.shift()?.(message.status);
    for (const event of message.events) if (isRequestEnd(event)) this.#open.delete(event.requestId);
    this.#options.onEvents(message.events);
  }

  /** Waits for the end of the engine's process. @returns how it ended. */
  async #watch(child: ChildProcess): Promise<string> {
    const how = await endOfChild(child);
    const wasReady = this.#isReady;
    const requestIds = [...this.#open];
    this.#isReady = false;
    this.#child = undefined;
    this.#open.clear();
    for (const answer of this.#asking.splice(0)) answer(undefined);
    if (wasReady) this.#options.onEvents([{ type: 'engine-lost', message: `the engine ${how}`, requestIds }]);
    return how;
  }

  #send(message: MessageToEngine): void {
    // A closed channel is seen by #watch; the callback keeps it from being thrown here as well.
    this.#child?.send(message, () => {});
  }
}

function unavailable(op: string, message: string): DarkroomError {
  return new DarkroomError('unavailable', op, message);
}
