import { setTimeout as delay } from 'node:timers/promises';
import { DarkroomError } from '@darkroom/core';
import { callMethod, type Executor } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import {
  answerCall,
  type EngineCall,
  type OperatorMessage,
  type StoreConnection,
  type WorkerIdentity,
} from '@darkroom/store';
import { readProcessMemory } from '../memory/read-memory.ts';
import type { EngineLife } from '../engine/engine-life.ts';

export interface OperatorCommandsOptions {
  store: StoreConnection;
  getIdentity: () => WorkerIdentity;
  engine: EngineLife;
  executor: Executor;
  /** Replaces the worker by a fresh one, which loads the current files. */
  restart: () => void;
  log: Logger;
}

/** The API waits a second longer. A step blocks the engine for as long as it takes. */
const healthTimeoutMs = 4000;
/** Max size of a method's result as JSON. */
const maxResultLength = 65_536;
const maxErrorLength = 2000;

/** Executes operators' commands and publishes the answers. */
export class OperatorCommands {
  readonly #options: OperatorCommandsOptions;

  constructor(options: OperatorCommandsOptions) {
    this.#options = options;
  }

  /** Resolves when the answer is published. */
  async execute({ type, call, rpc }: OperatorMessage): Promise<void> {
    const { store, getIdentity, engine, restart, log } = this.#options;
    // The API reads the answer under the shard that the command was sent to.
    const identity = getIdentity();
    // A sleeping model has no old files in memory, and loads the current ones for its next request.
    if (type === 'restart' && !engine.isFullyAsleep) restart();
    else if (type === 'sleep') engine.sleep();
    else if (type === 'wake') void engine.wake();
    if (call === undefined) return;
    try {
      const details = rpc === undefined ? await this.#detailsOf(type) : await this.#call(rpc);
      await answerCall(store, identity, { call, answer: { state: engine.state, ...details } });
    } catch (error) {
      log.error({ err: error, call: type }, 'could not answer an operator command');
    }
  }

  async #detailsOf(type: OperatorMessage['type']): Promise<object> {
    if (type === 'check_health') return this.#health();
    return type === 'memory' ? this.#memory() : {};
  }

  /** Calls a method of the engine. The operator sees its error. */
  async #call({ method, parameters }: EngineCall): Promise<object> {
    const { engine, executor } = this.#options;
    if (engine.state === 'asleep') return { error: 'the worker is asleep: wake it first' };
    try {
      const timeout = delay(healthTimeoutMs, undefined, { ref: false }).then(() => {
        throw new DarkroomError('unavailable', 'worker.rpc', `no reply within ${healthTimeoutMs / 1000} s`);
      });
      const result = (await Promise.race([callMethod(executor, method, parameters), timeout])) ?? null;
      const { length } = JSON.stringify(result);
      if (length <= maxResultLength) return { result };
      return { error: `the result has ${length} characters of JSON, expected at most ${maxResultLength}` };
    } catch (error) {
      return { error: (error as Error).message.slice(0, maxErrorLength) };
    }
  }

  /** A sleeping model is healthy and has no engine to check. */
  async #health(): Promise<object> {
    const { engine, executor } = this.#options;
    if (engine.state === 'asleep') return { isHealthy: true };
    return Promise.race([executor.checkHealth(), delay(healthTimeoutMs, { isHealthy: false }, { ref: false })]);
  }

  /** Returns the memory of this process, which may serve other models too, and of the engine process. */
  async #memory(): Promise<object> {
    const { enginePid } = this.#options.executor;
    const [processBytes, engineBytes] = await Promise.all([
      readProcessMemory(process.pid),
      enginePid === undefined ? undefined : readProcessMemory(enginePid),
    ]);
    return { processBytes: processBytes ?? process.memoryUsage.rss(), engineBytes };
  }
}
