import { type Config, memoryReturningEnvironment } from '@darkroom/config';
import { DarkroomError } from '@darkroom/core';
import { type LoadModelOptions, ProcessExecutor } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import { ModelFiles } from '../files/model-files.ts';
import { encoderOf } from '../request/output-encoder.ts';
import type { LoadWatch } from './load-watch.ts';
import { logComponents } from './log-components.ts';
import { readModel, type WorkerModel } from './read-model.ts';
import { roomOf } from './room.ts';
import type { WorkerEngine } from './worker-engine.ts';

/** An engine of ours in a process of its own, on a model's directory. */
export async function processEngine(config: Config<'worker'>, loads: LoadWatch, log: Logger): Promise<WorkerEngine> {
  const model = modelOptions(config);
  const files = new ModelFiles(model);
  const read = async () => {
    await files.mark();
    const { digest } = files;
    return { digest, ...withRoom(await readModel(model, log), config, model) };
  };
  let current = await loads.watch(read);
  const { kind } = current.card;
  const checkpointEvery = config.checkpointSteps;
  const environment = config.hasLowMemory ? memoryReturningEnvironment() : undefined;
  let device = config.devices.join(', ');
  return {
    ...current,
    files,
    encoder: encoderOf(kind),
    get device() {
      return device;
    },
    async prepare() {
      await files.mark();
      if (files.digest === current.digest) return undefined;
      const next = await read();
      if (next.card.kind !== kind) throw otherKind(kind, next.card.kind);
      current = next;
      return current;
    },
    createExecutor: (onEvents) =>
      new ProcessExecutor({
        // As they are when it is started.
        get model() {
          return current.options;
        },
        get maxSlots() {
          return current.capacity;
        },
        checkpointEvery,
        environment,
        onEvents,
        onLoaded: (components) => (device = logComponents(components, { log, asked: config.devices }).join(', ')),
      }),
  };
}

function withRoom({ card, asset, tokenBytes }: WorkerModel, config: Config<'worker'>, model: LoadModelOptions) {
  const availableBytes = process.availableMemory();
  const { slots: capacity, memoryTokens } = roomOf(card, { ...config, tokenBytes, availableBytes });
  const options = { ...model, ...(memoryTokens !== undefined && { maxTokens: capacity, memoryTokens }) };
  return { card, asset, capacity, options };
}

function otherKind(before: string, now: string): DarkroomError {
  const message = `is of kind ${now}, expected ${before}, as it was: start the worker again for another`;
  return new DarkroomError('model_unsupported', 'worker.load', `the model ${message}`);
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
