import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { DarkroomError, type ModelCard, type PipelineComponent } from '@darkroom/core';
import type { EngineProcessOptions, MessageFromEngine, MessageToEngine } from './engine-message.ts';
import { type ExecutorListener, isRequestEnd } from '../executor-event.ts';
import type { Executor, ExecutorHealth, ExecutorRequest, ShutdownOptions } from '../executor.ts';

export interface ProcessExecutorOptions extends EngineProcessOptions {
  onEvents: ExecutorListener;
  /** Hears what each part of the model runs on, before `start` resolves. */
  onLoaded?: (components: readonly PipelineComponent[]) => void;
  /** Of the engine's process; that of this one if absent. */
  environment?: Record<string, string | undefined> | undefined;
  /** How long `checkHealth` waits; a step blocks the engine, so longer than the slowest. */
  healthTimeoutMs?: number;
  /** How long `shutdown` waits for the step under way before it kills the engine. */
  shutdownTimeoutMs?: number;
}

// Always the built entry: Node runs no TypeScript, so tests of the sources need `npm run build` before them.
const entry = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? '../../dist/process/engine-process.js' : './engine-process.js',
    import.meta.url,
  ),
);

interface EngineStatus {
  readonly slots: number;
  readonly waitingRequests: number;
}

/** Runs the engine in a process of its own, the default: `session.run` blocks only that one's event loop. */
export class ProcessExecutor implements Executor {
  readonly #options: Required<Omit<ProcessExecutorOptions, 'environment'>> &
    Pick<ProcessExecutorOptions, 'environment'>;
  /** Submitted and not ended. */
  readonly #open = new Set<string>();
  readonly #checks = new Map<number, (status: EngineStatus | undefined) => void>();
  #child: ChildProcess | undefined;
  /** Resolves when the child is gone. */
  #ended: Promise<string> = Promise.resolve('was not started');
  #isReady = false;
  #nextCheckId = 0;

  constructor(options: ProcessExecutorOptions) {
    this.#options = {
      checkpointEvery: 0,
      onLoaded: () => {},
      healthTimeoutMs: 30_000,
      shutdownTimeoutMs: 10_000,
      ...options,
    };
  }

  /** The engine's process, for logs; undefined while there is none. */
  get enginePid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<ModelCard> {
    if (this.#child !== undefined) throw unavailable('executor.start', 'the engine is already running');
    // No flags of this process: a debugger's port or a test's conditions are not the engine's.
    const stdio = ['inherit', 'inherit', 'inherit', 'ipc', 'pipe'] as const;
    const { environment: env } = this.#options;
    const child = fork(entry, { serialization: 'advanced', execArgv: [], stdio: [...stdio], ...(env && { env }) });
    this.#child = child;
    const ended = this.#watch(child);
    this.#ended = ended;
    const started = new Promise<ModelCard>((resolve, reject) => {
      let failure: DarkroomError | undefined;
      child.on('message', (message: MessageFromEngine) => {
        if (message.type === 'ready') {
          this.#isReady = true;
          this.#options.onLoaded(message.components);
          resolve(message.card);
        } else if (message.type === 'start-failed') {
          const { code, detail } = message;
          const cause = detail === undefined ? undefined : new Error(detail);
          failure = new DarkroomError({ code, op: 'executor.start', message: message.message, cause });
        } else this.#receive(message);
      });
      // Only when the process is gone, so that the caller may start again at once.
      void ended.then((how) => reject(failure ?? unavailable('executor.start', `the engine ${how}`)));
    });
    const { model, maxSlots, checkpointEvery } = this.#options;
    this.#send({ type: 'start', options: { model, maxSlots, checkpointEvery } });
    return started;
  }

  submit(requests: readonly ExecutorRequest[]): void {
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
    const checkId = this.#nextCheckId++;
    const startedAtMs = performance.now();
    const answer = await new Promise<EngineStatus | undefined>((resolve) => {
      if (!this.#isReady) return resolve(undefined);
      const timer = setTimeout(() => resolve(undefined), this.#options.healthTimeoutMs);
      timer.unref();
      this.#checks.set(checkId, (status) => {
        clearTimeout(timer);
        resolve(status);
      });
      this.#send({ type: 'health', checkId });
    });
    this.#checks.delete(checkId);
    const latencyMs = performance.now() - startedAtMs;
    const { slots, waitingRequests } = answer ?? { slots: 0, waitingRequests: 0 };
    return { isHealthy: answer !== undefined, slots, waitingRequests, latencyMs };
  }

  async shutdown({ shouldCheckpoint = false }: ShutdownOptions = {}): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    // A model still loading has nothing to give back.
    if (this.#isReady) this.#send({ type: 'shutdown', shouldCheckpoint });
    else child.kill('SIGKILL');
    this.#isReady = false;
    this.#open.clear();
    const timer = setTimeout(() => child.kill('SIGKILL'), this.#options.shutdownTimeoutMs);
    await this.#ended;
    clearTimeout(timer);
  }

  #receive(message: Exclude<MessageFromEngine, { type: 'ready' | 'start-failed' }>): void {
    if (message.type === 'health') this.#checks.get(message.checkId)?.(message);
    if (message.type !== 'events') return;
    for (const event of message.events) if (isRequestEnd(event)) this.#open.delete(event.requestId);
    this.#options.onEvents(message.events);
  }

  /** Waits for the end of the engine's process. @returns how it ended. */
  async #watch(child: ChildProcess): Promise<string> {
    const how = await endOf(child);
    const wasReady = this.#isReady;
    const requestIds = [...this.#open];
    this.#isReady = false;
    this.#child = undefined;
    this.#open.clear();
    for (const answer of this.#checks.values()) answer(undefined);
    if (wasReady) this.#options.onEvents([{ type: 'engine-lost', message: `the engine ${how}`, requestIds }]);
    return how;
  }

  #send(message: MessageToEngine): void {
    // A closed channel is seen by #watch; the callback keeps it from being thrown here as well.
    this.#child?.send(message, () => {});
  }
}

/** How a process ended, once everything it sent has been read: `disconnect` may come later than `exit`. */
function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let how: string | undefined;
    const settle = () => {
      if (how !== undefined && !child.connected) resolve(how);
    };
    child.once('exit', (code, signal) => {
      how = signal === null ? `exited with code ${String(code)}` : `was killed by ${signal}`;
      settle();
    });
    child.once('disconnect', settle);
    child.on('error', (error) => {
      // Without a pid it never was; other errors concern one message, and `exit` is still to come.
      if (child.pid === undefined) resolve(`could not be started: ${error.message}`);
    });
  });
}

function unavailable(op: string, message: string): DarkroomError {
  return new DarkroomError({ code: 'unavailable', op, message });
}
