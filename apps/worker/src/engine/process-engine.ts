import { type Config, memoryReturningEnvironment } from '@darkroom/config';
import { DarkroomError, type Device, type ModelCard } from '@darkroom/core';
import { type LoadModelOptions, ProcessExecutor } from '@darkroom/executor';
import type { TextCard } from '@darkroom/kinds';
import type { Logger } from '@darkroom/service';
import { ModelFiles } from '../files/model-files.ts';
import { estimateNeed, type MemoryNeed } from '../memory/estimate-need.ts';
import type { MemoryKeeper } from '../memory/memory-keeper.ts';
import { readGpuMemory, readProcessMemory } from '../memory/read-memory.ts';
import type { Restart } from '../models/restartable-worker.ts';
import { encoderOf } from '../request/output-encoder.ts';
import type { LoadWatch } from './load-watch.ts';
import { logLoaded } from './log-loaded.ts';
import { checkModelDirectory, readModel, type WorkerModel } from './read-model.ts';
import { capacityOf } from './capacity.ts';
import type { WorkerEngine } from './worker-engine.ts';

export interface ProcessEngineOptions {
  loads: LoadWatch;
  restart: Restart;
  log: Logger;
  /** Shared by the models of this process; undefined if memory is not limited. */
  memory?: MemoryKeeper | undefined;
}

/** Smaller weights run on one thread: a second gains nothing (emoji-writer: 1.5 ms per token with either). */
const smallTextBytes = 20e6;

/** Runs the built-in engine on a model's directory, in its own process. */
export async function processEngine(config: Config<'worker'>, options: ProcessEngineOptions): Promise<WorkerEngine> {
  const { loads, restart, log, memory } = options;
  const [model, requestedDevices] = [modelOptions(config), config.devices];
  const files = new ModelFiles(model);
  await loads.watch(async () => {
    checkModelDirectory(model.directory);
    await files.mark();
  });
  const { digest } = files;
  const read = await loads.watch(async () => withCapacity(await readModel(model, log), { config, model, memory }));
  const { card, asset, capacity } = read;
  let executor: ProcessExecutor | undefined;
  const source = { memory, device: requestedDevices[0], pid: () => executor?.enginePid };
  const engine: WorkerEngine = {
    card,
    asset,
    capacity,
    shared: await loads.watch(async () => sharedOf(read, source)),
    files,
    encoder: encoderOf(card.kind, config.modelId),
    device: requestedDevices.join(', '),
    async prepare() {
      await loads.watch(() => files.mark());
      if (files.digest === digest) return;
      restart({ isForced: true });
      throw new DarkroomError('unavailable', 'worker.load', 'model files were replaced: the worker restarts');
    },
    createExecutor: (onEvents) =>
      (executor = new ProcessExecutor({
        model: read.options,
        maxSlots: capacity,
        checkpointEvery: config.checkpointSteps,
        environment: config.hasLowMemory ? memoryReturningEnvironment() : undefined,
        onEvents,
        onLoaded: (components, loaded) =>
          (engine.device = logLoaded({ components, card: loaded }, { log, requested: requestedDevices }).join(', ')),
      })),
  };
  return engine;
}

/** Opens the model's share of the memory budget, if there is one. */
function sharedOf(
  { card, need }: { card: ModelCard; need: MemoryNeed },
  { memory, device, pid: read }: { memory: MemoryKeeper | undefined; device: Device; pid: () => number | undefined },
): WorkerEngine['shared'] {
  const readMemory = device.startsWith('cuda') ? readGpuMemory : readProcessMemory;
  const measure = async (): Promise<number | undefined> => {
    const pid = read();
    return pid === undefined ? undefined : readMemory(pid);
  };
  return memory && { allocation: memory.open({ model: card.id, ...need, measure }), card };
}

function withCapacity(
  { card, asset, weightBytes, tokenBytes = 0 }: WorkerModel,
  { config, model, memory }: { config: Config<'worker'>; model: LoadModelOptions; memory: MemoryKeeper | undefined },
) {
  const availableBytes = Math.min(process.availableMemory(), memory?.budgetBytes ?? Infinity);
  const { slots: capacity, memoryTokens } = capacityOf(card, { ...config, tokenBytes, availableBytes });
  const isText = memoryTokens !== undefined;
  const threads = config.numThreads || (isText && weightBytes < smallTextBytes ? 1 : undefined);
  const options = { ...model, ...(threads && { threads }), ...(isText && { maxTokens: capacity, memoryTokens }) };
  const cacheBytes = isText ? capacity * tokenBytes : 0;
  const need = estimateNeed(card, { weightBytes, cacheBytes, device: config.devices[0] });
  return { card: isText ? limitTextLength(card as TextCard, capacity) : card, asset, capacity, options, need };
}

/** Limits the text length to the capacity, as the engine does when it reports its card. */
function limitTextLength(card: TextCard, tokens: number): TextCard {
  return { ...card, maxModelTokens: Math.min(card.maxModelTokens, tokens) };
}

function modelOptions(config: Config<'worker'>): LoadModelOptions {
  return {
    directory: config.modelDir,
    id: config.modelId,
    dtypes: config.modelDtype,
    devices: config.devices,
    hasLowMemory: config.hasLowMemory,
    safetyChecker: config.safetyChecker,
  };
}
