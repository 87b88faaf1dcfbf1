import { CallExecutor, type CallOptions } from '../calls/call-executor.ts';
import { ModuleClient, type ModuleCallerOptions } from './module-client.ts';

export interface ModuleExecutorOptions
  extends Omit<ModuleCallerOptions, 'timeoutMs'>, Pick<CallOptions, 'onEvents' | 'timeoutMs' | 'checkEveryMs'> {}

/** Timeout of `createExecutor`, as a multiple of `timeoutMs`. */
const startFactor = 10;

/** Runs a custom module in its own process, so that a crash affects only the module's own requests. */
export class ModuleExecutor extends CallExecutor {
  readonly #caller: ModuleClient;

  constructor({ module, model, environment, timeoutMs = 60_000, ...options }: ModuleExecutorOptions) {
    const caller = new ModuleClient({ module, model, environment, timeoutMs });
    super(caller, { ...options, timeoutMs, startTimeoutMs: startFactor * timeoutMs });
    this.#caller = caller;
  }

  /** Process id of the module; undefined while there is none. */
  get enginePid(): number | undefined {
    return this.#caller.pid;
  }
}
