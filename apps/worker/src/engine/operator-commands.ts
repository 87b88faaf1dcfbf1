import { setTimeout as delay } from 'node:timers/promises';
import type { Executor } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import { answerCall, type OperatorMessage, type StoreConnection, type WorkerIdentity } from '@darkroom/store';
import type { HotSwap } from '../files/hot-swap.ts';
import { readProcessMemory } from '../memory/read-memory.ts';
import type { EngineLife } from './engine-life.ts';

export interface OperatorCommandsOptions {
  store: StoreConnection;
  identity: WorkerIdentity;
  engine: EngineLife;
  executor: Executor;
  swap: HotSwap;
  log: Logger;
}

/** Who asks waits a second longer. A step may block an engine as long as it takes. */
const patienceMs = 4000;

/** What operators ask of a worker: it is done, or begun, and they are told how things are. */
export class OperatorCommands {
  readonly #options: OperatorCommandsOptions;

  constructor(options: OperatorCommandsOptions) {
    this.#options = options;
  }

  /** Resolves when it is answered. */
  async obey({ type, call }: OperatorMessage): Promise<void> {
    const { store, engine, swap, log } = this.#options;
    // Who asked looks for the answer where the worker was.
    const identity = { ...this.#options.identity };
    if (type === 'reload') swap.ask();
    else if (type === 'sleep' || type === 'wake') void engine[type]();
    if (call === undefined) return;
    try {
      const more = await this.#moreOf(type);
      await answerCall(store, identity, { call, answer: { state: engine.state, ...more } });
    } catch (error) {
      log.error({ err: error, call: type }, 'could not answer an operator');
    }
  }

  async #moreOf(type: OperatorMessage['type']): Promise<object> {
    if (type === 'check_health') return this.#health();
    return type === 'memory' ? this.#memory() : {};
  }

  /** One that sleeps is well, and has no engine to ask. */
  async #health(): Promise<object> {
    const { engine, executor } = this.#options;
    if (engine.state === 'asleep') return { isHealthy: true };
    return Promise.race([executor.checkHealth(), delay(patienceMs, { isHealthy: false }, { ref: false })]);
  }

  /** Of this process, in which other models may be, too, and of the engine's. */
  async #memory(): Promise<object> {
    const { enginePid } = this.#options.executor;
    const [processBytes, engineBytes] = await Promise.all([
      readProcessMemory(process.pid),
      enginePid === undefined ? undefined : readProcessMemory(enginePid),
    ]);
    return { processBytes: processBytes ?? process.memoryUsage.rss(), engineBytes };
  }
}
