import { basename, isAbsolute } from 'node:path';
import { type Config, memoryReturningEnvironment } from '@darkroom/config';
import { ModuleExecutor } from '@darkroom/executor';
import type { WorkerEngine } from './worker-engine.ts';

/** Runs a custom module in its own process. Its card and capacity are known once it has started. */
export function moduleEngine(config: Config<'worker'>): WorkerEngine {
  const { modelId: model, executor: module, engineTimeoutS, hasLowMemory } = config;
  return {
    card: { id: model },
    capacity: 1,
    // Clients see this: do not show the module's path.
    device: isAbsolute(module) ? basename(module) : module,
    createExecutor: (onEvents) =>
      new ModuleExecutor({
        module,
        model,
        timeoutMs: engineTimeoutS * 1000,
        environment: hasLowMemory ? memoryReturningEnvironment() : undefined,
        onEvents,
      }),
  };
}
