import { basename } from 'node:path';
import { type Config, memoryReturningEnvironment } from '@darkroom/config';
import { PythonExecutor } from '@darkroom/executor';
import type { WorkerEngine } from './worker-engine.ts';

/** Runs an engine in Python in its own process. Its card and capacity are known once it has started. */
export function pythonEngine(config: Config<'worker'>): WorkerEngine {
  const { modelId: model, module = '', python, engineMemoryMb, engineTimeoutS, checkpointSteps, hasLowMemory } = config;
  return {
    card: { id: model },
    capacity: 1,
    // Clients see this: do not show the path.
    device: basename(module),
    createExecutor: (onEvents) =>
      new PythonExecutor({
        module,
        model,
        python,
        maxDataBytes: engineMemoryMb && engineMemoryMb * 1e6,
        checkpointEvery: checkpointSteps,
        timeoutMs: engineTimeoutS * 1000,
        environment: hasLowMemory ? memoryReturningEnvironment() : undefined,
        onEvents,
      }),
  };
}
