import { type Config, memoryReturningEnvironment } from '@darkroom/config';
import { type LoadModelOptions, ProcessExecutor } from '@darkroom/executor';
import type { TextCard } from '@darkroom/kinds';
import type { Logger } from '@darkroom/service';
import { estimateNeed } from '../memory/estimate-need.ts';
import type { MemoryKeeper } from '../memory/memory-keeper.ts';
import { readGpuMemory, readProcessMemory } from '../memory/read-memory.ts';
import { encoderOf } from '../request/output-encoder.ts';
import type { LoadWatch } from './load-watch.ts';
import { logComponents } from './log-components.ts';
import { readModel } from './read-model.ts';
import { roomOf } from './room.ts';
import type { WorkerEngine } from './worker-engine.ts';

export interface ProcessEngineOptions {
  loads: LoadWatch;
  log: Logger;
  /** Of the models of this process, where there are several. */
  memory?: MemoryKeeper | undefined;
}

/** An engine of ours in a process of its own, on a model's directory. */
export async function processEngine(
  config: Config<'worker'>,
  { loads, log, memory }: ProcessEngineOptions,
): Promise<WorkerEngine> {
  const model = modelOptions(config);
  const { card, asset, weightBytes, tokenBytes = 0 } = await loads.watch(() => readModel(model, log));
  const availableBytes = Math.min(process.availableMemory(), memory?.budgetBytes ?? Infinity);
  const { slots: capacity, memoryTokens } = roomOf(card, { ...config, tokenBytes, availableBytes });
  const options = {
    model: { ...model, ...(memoryTokens !== undefined && { maxTokens: capacity, memoryTokens }) },
    maxSlots: capacity,
    checkpointEvery: config.checkpointSteps,
    environment: config.hasLowMemory ? memoryReturningEnvironment() : undefined,
  };
  let device = config.devices.join(', ');
  let executor: ProcessExecutor | undefined;
  const read = config.devices[0].startsWith('cuda') ? readGpuMemory : readProcessMemory;
  const measure = async (): Promise<number | undefined> => executor?.enginePid && read(executor.enginePid);
  const cacheBytes = memoryTokens === undefined ? 0 : capacity * tokenBytes;
  const need = estimateNeed(card, { weightBytes, cacheBytes, device: config.devices[0] });
  const place = await loads.watch(async () => memory?.open({ model: card.id, ...need, measure }));
  return {
    card,
    asset,
    shared: place && { place, card: memoryTokens === undefined ? card : withinRoom(card as TextCard, capacity) },
    capacity,
    encoder: encoderOf(card.kind),
    get device() {
      return device;
    },
    createExecutor: (onEvents) =>
      (executor = new ProcessExecutor({
        ...options,
        onEvents,
        onLoaded: (components) => (device = logComponents(components, { log, asked: config.devices }).join(', ')),
      })),
  };
}

/** As an engine will say it: no text is longer than the room. */
function withinRoom(card: TextCard, tokens: number): TextCard {
  return { ...card, maxModelTokens: Math.min(card.maxModelTokens, tokens) };
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
