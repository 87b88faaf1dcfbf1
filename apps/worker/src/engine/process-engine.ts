import { type Config, memoryReturningEnvironment } from '@darkroom/config';
import { type LoadModelOptions, ProcessExecutor } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import { encoderOf } from '../request/output-encoder.ts';
import type { LoadWatch } from './load-watch.ts';
import { logComponents } from './log-components.ts';
import { readModel } from './read-model.ts';
import { roomOf } from './room.ts';
import type { WorkerEngine } from './worker-engine.ts';

/** An engine of ours in a process of its own, on a model's directory. */
export async function processEngine(config: Config<'worker'>, loads: LoadWatch, log: Logger): Promise<WorkerEngine> {
  const model = modelOptions(config);
  const { card, asset, tokenBytes } = await loads.watch(() => readModel(model, log));
  const { slots: capacity, memoryTokens } = roomOf(card, {
    ...config,
    tokenBytes,
    availableBytes: process.availableMemory(),
  });
  const options = {
    model: { ...model, ...(memoryTokens !== undefined && { maxTokens: capacity, memoryTokens }) },
    maxSlots: capacity,
    checkpointEvery: config.checkpointSteps,
    environment: config.hasLowMemory ? memoryReturningEnvironment() : undefined,
  };
  let device = config.devices.join(', ');
  return {
    card,
    asset,
    capacity,
    encoder: encoderOf(card.kind),
    get device() {
      return device;
    },
    createExecutor: (onEvents) =>
      new ProcessExecutor({
        ...options,
        onEvents,
        onLoaded: (components) => (device = logComponents(components, { log, asked: config.devices }).join(', ')),
      }),
  };
}

function modelOptions(config: Config<'worker'>): LoadModelOptions {
  return {
    directory: config.modelDir,
    id: config.modelId,
    dtypes: config.modelDtype,
    devices: config.devices,
    isStrictAboutDevice: config.isStrictAboutDevice,
    hasLowMemory: config.hasLowMemory,
    vaeTileSize: config.vaeTileSize,
    stepTokens: config.stepTokens,
    ...(config.numThreads === 0 ? {} : { threads: config.numThreads }),
  };
}
