import { CallExecutor, type CallOptions } from '../calls/call-executor.ts';
import { ModuleCaller, type ModuleCallerOptions } from './module-caller.ts';

export interface ModuleExecutorOptions
  extends Omit<ModuleCallerOptions, 'patienceMs'>, Pick<CallOptions, 'onEvents' | 'patienceMs' | 'checkEveryMs'> {}

/** `createExecutor` has so many times longer than an answer. */
const startFactor = 10;

/** Runs a module of somebody's own in a process of its own: what an engine's crash does there, it does to its own requests only. */
export class ModuleExecutor extends CallExecutor {
  readonly #caller: ModuleCaller;

  constructor({ module, model, environment, patienceMs = 60_000, ...options }: ModuleExecutorOptions) {
    const caller = new ModuleCaller({ module, model, environment, patienceMs });
    super(caller, { ...options, patienceMs, startPatienceMs: startFactor * patienceMs });
    this.#caller = caller;
  }

  /** The module's process, for logs; undefined while there is none. */
  get enginePid(): number | undefined {
    return this.#caller.pid;
  }
}
