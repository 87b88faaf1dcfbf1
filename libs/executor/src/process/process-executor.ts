import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Child, DarkroomError, type ModelCard, type PipelineComponent, type RowRequest } from '@darkroom/core';
import {
  type EngineProcessOptions,
  messageFromEngine,
  type MessageFromEngine,
  type MessageToEngine,
} from './engine-message.ts';
import { type ExecutorListener, isRequestEnd } from '../executor-event.ts';
import {
  type EngineStatus,
  type Executor,
  type ExecutorHealth,
  type ShutdownOptions,
  unavailable,
} from '../executor.ts';

export interface ProcessExecutorOptions extends EngineProcessOptions {
  onEvents: ExecutorListener;
  /** Receives the device of each model component, and the model's card, before `start` resolves. */
  onLoaded?: (components: readonly PipelineComponent[], card: ModelCard) => void;
  /** Environment of the engine process; default: this process's own. */
  environment?: Record<string, string | undefined> | undefined;
}

/** Timeout of `checkHealth`. A step blocks the engine, so it exceeds the slowest step. */
const healthTimeoutMs = 30_000;
/** Max time for the current step on `shutdown`, before the engine is killed. */
const shutdownTimeoutMs = 10_000;

// Always the built entry: Node runs no TypeScript, so tests of the sources need `npm run build` before them.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../dist/process' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/engine-process.js`, import.meta.url));

/** Runs the engine in its own process (the default), so that `session.run` does not block the worker's event loop. */
export class ProcessExecutor implements Executor {
  readonly #options: ProcessExecutorOptions;
  /** Submitted requests that have not ended. */
  readonly #open = new Set<string>();
  /** Pending health checks, in the order in which the engine answers. */
  readonly #healthChecks: ((status: EngineStatus | undefined) => void)[] = [];
  #child: Child<MessageToEngine, MessageFromEngine> | undefined;
  #isReady = false;

  constructor(options: ProcessExecutorOptions) {
    this.#options = options;
  }

  get enginePid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<ModelCard> {
    if (this.#child !== undefined) throw unavailable('executor.start', 'the engine is already running');
    const { model, maxSlots, checkpointEvery = 0, environment } = this.#options;
    const child = new Child<MessageToEngine, MessageFromEngine>({
      entry,
      environment,
      schema: messageFromEngine,
      onMessage: (message) => this.#receive(message),
    });
    this.#child = child;
    const ended = child.ended.then(({ how }) => this.#lose(how));
    child.send({ type: 'start', options: { model, maxSlots, checkpointEvery } });
    const first = await child.next();
    if (first?.type === 'ready') return first.card;
    // Reject only when the process has exited, so that the caller can start again at once.
    await ended;
    if (first?.type === 'start-failed') throw new DarkroomError(...first.failure);
    throw unavailable('executor.start', `the engine ${child.how}`);
  }

  submit(requests: readonly RowRequest[]): void {
    if (!this.#isReady) throw unavailable('executor.submit', 'the engine is not running');
    for (const { id } of requests) this.#open.add(id);
    this.#child?.send({ type: 'submit', requests });
  }

  cancel(requestId: string): void {
    if (this.#open.has(requestId)) this.#child?.send({ type: 'cancel', requestId });
  }

  kill(): void {
    this.#child?.kill();
  }

  async checkHealth(): Promise<ExecutorHealth> {
    const startedAtMs = performance.now();
    const status = this.#isReady ? await this.#queryStatus() : undefined;
    const latencyMs = performance.now() - startedAtMs;
    return { isHealthy: status !== undefined, slots: 0, waitingRequests: 0, ...status, latencyMs };
  }

  async shutdown({ shouldCheckpoint = false }: ShutdownOptions = {}): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const wasReady = this.#isReady;
    this.#isReady = false;
    this.#open.clear();
    if (wasReady) return child.stop({ type: 'shutdown', shouldCheckpoint }, shutdownTimeoutMs);
    // A model that is still loading has no checkpoints.
    child.kill();
    await child.ended;
  }

  /** Resolves undefined on timeout, or if the engine ends. */
  #queryStatus(): Promise<EngineStatus | undefined> {
    const answer = new Promise<EngineStatus | undefined>((resolve) => this.#healthChecks.push(resolve));
    this.#child?.send({ type: 'health' });
    return Promise.race([answer, delay(healthTimeoutMs, undefined, { ref: false })]);
  }

  #receive(message: MessageFromEngine): void {
    if (message.type === 'ready') {
      this.#isReady = true;
      this.#options.onLoaded?.(message.components, message.card);
    } else if (message.type === 'health') this.#healthChecks.shift()?.(message.status);
    else if (message.type === 'events') {
      for (const event of message.events) if (isRequestEnd(event)) this.#open.delete(event.requestId);
      this.#options.onEvents(message.events);
    }
  }

  #lose(how: string): void {
    const wasReady = this.#isReady;
    const requestIds = [...this.#open];
    this.#isReady = false;
    this.#child = undefined;
    this.#open.clear();
    for (const answer of this.#healthChecks.splice(0)) answer(undefined);
    if (wasReady) this.#options.onEvents([{ type: 'engine-lost', message: `the engine ${how}`, requestIds }]);
  }
}
