import { type Config, memoryReturningEnvironment, modelDirectoryProblem } from '@darkroom/config';
import { DarkroomError, type Device, type ModelCard } from '@darkroom/core';
import { type EngineKinds, type LoadModelOptions, ProcessExecutor } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import { ModelFiles } from './model-files.ts';
import { estimateNeed, type MemoryNeed } from '../memory/estimate-need.ts';
import type { MemoryKeeper } from '../memory/memory-keeper.ts';
import { readGpuMemory, readProcessMemory } from '../memory/read-memory.ts';
import type { LoadWatch } from './load-watch.ts';
import { logLoaded } from './log-loaded.ts';
import type { Restart, WorkerEngine } from './worker-engine.ts';

export interface ProcessEngineOptions {
  kinds: EngineKinds;
  loads: LoadWatch;
  restart: Restart;
  log: Logger;
  /** Shared by the models of this process; undefined if memory is not limited. */
  memory?: MemoryKeeper | undefined;
}

/**
 * Runs the built-in engine on a model's directory, in its own process.
 *
 * @throws DarkroomError `model_unsupported` if the directory cannot be served, or the model can never fit memory.
 */
export async function processEngine(config: Config<'worker'>, options: ProcessEngineOptions): Promise<WorkerEngine> {
  const { kinds, loads, restart, log, memory } = options;
  const { devices: requested, modelDir: directory, modelId: id, modelDtype: dtypes } = config;
  const { hasLowMemory, safetyChecker } = config;
  const model = { directory, id, dtypes, devices: requested, hasLowMemory, safetyChecker };
  const files = new ModelFiles(model, kinds);
  checkModelDirectory(directory);
  await files.mark();
  const { digest } = files;
  const read = await readModel(model, { ...options, config });
  const { card, asset, capacity } = read;
  let executor: ProcessExecutor | undefined;
  const source = { memory, device: requested[0], pid: () => executor?.enginePid };
  const engine: WorkerEngine = {
    card,
    asset,
    capacity,
    shared: sharedOf(read, source),
    files,
    device: requested.join(', '),
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
        environment: hasLowMemory ? memoryReturningEnvironment() : undefined,
        onEvents,
        onLoaded: (components, loaded) =>
          (engine.device = logLoaded({ components, card: loaded }, { log, requested }).join(', ')),
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

/** Reads the model's metadata from its files, logs it, and sizes the worker by it. */
async function readModel(
  model: LoadModelOptions,
  { config, kinds, memory, log }: ProcessEngineOptions & { config: Config<'worker'> },
) {
  const kind = await kinds.detect(model.directory);
  const described = await kind.describe(model);
  const { asset, weightBytes, slotBytes = 0, notes } = described;
  for (const { level, message, fields } of notes) log[level]({ model: described.card.id, ...fields }, message);
  const availableBytes = Math.min(process.availableMemory(), memory?.budgetBytes ?? Infinity);
  const limits = { ...config, availableBytes };
  const { slots, memorySlots, threads, card = described.card } = kind.capacity(described, limits);
  const options = { ...model, maxSlots: slots, memorySlots, threads: config.numThreads || threads };
  const sizes = { weightBytes, cacheBytes: slots * slotBytes, device: config.devices[0] };
  return { card, asset, capacity: slots, options, need: estimateNeed(kind.memory, sizes) };
}

/** @throws DarkroomError `model_unsupported` if the path is not a model directory, with what it is and what to do. */
function checkModelDirectory(directory: string): void {
  const problem = modelDirectoryProblem(directory);
  if (problem !== undefined) throw new DarkroomError('model_unsupported', 'worker.read-model', problem);
}
