import { type Config, memoryReturningEnvironment } from '@darkroom/config';
import { DarkroomError, type Device, type ModelCard } from '@darkroom/core';
import { type LoadModelOptions, ProcessExecutor } from '@darkroom/executor';
import type { TextCard } from '@darkroom/kinds';
import type { Logger } from '@darkroom/service';
import { ModelFiles } from '../files/model-files.ts';
import { estimateNeed, type MemoryNeed } from '../memory/estimate-need.ts';
import type { MemoryKeeper } from '../memory/memory-keeper.ts';
import { readGpuMemory, readProcessMemory } from '../memory/read-memory.ts';
import { encoderOf } from '../request/output-encoder.ts';
import type { LoadWatch } from './load-watch.ts';
import { logLoaded } from './log-loaded.ts';
import { readModel, type WorkerModel } from './read-model.ts';
import { roomOf } from './room.ts';
import type { WorkerEngine } from './worker-engine.ts';

export interface ProcessEngineOptions {
  loads: LoadWatch;
  log: Logger;
  /** Of the models of this process, where they have to share it. */
  memory?: MemoryKeeper | undefined;
}

/** With less, a second thread gains nothing: 1.5 ms a token of the embedded writer with either. */
const smallTextBytes = 20e6;

/** An engine of ours in a process of its own, on a model's directory. */
export async function processEngine(config: Config<'worker'>, options: ProcessEngineOptions): Promise<WorkerEngine> {
  const { loads, log, memory } = options;
  const [model, asked] = [modelOptions(config), config.devices];
  const files = new ModelFiles(model);
  const read = async () => {
    return { digest: files.digest, ...withRoom(await readModel(model, log), { config, model, memory }) };
  };
  await loads.watch(() => files.mark());
  const found = await loads.watch(read);
  const { kind } = found.card;
  let executor: ProcessExecutor | undefined;
  const place = { memory, device: asked[0], pid: () => executor?.enginePid };
  const engine: WorkerEngine & typeof found = {
    ...found,
    shared: await loads.watch(async () => sharedOf(found, place)),
    files,
    encoder: encoderOf(kind, config),
    device: asked.join(', '),
    async prepare() {
      await files.mark();
      if (files.digest === engine.digest) return;
      const next = await read();
      if (next.card.kind !== kind) throw otherKind(kind, next.card.kind);
      engine.shared?.place.expect(next.need);
      Object.assign(engine, next);
    },
    createExecutor: (onEvents) =>
      (executor = new ProcessExecutor({
        // As they are when it is started.
        get model() {
          return engine.options;
        },
        get maxSlots() {
          return engine.capacity;
        },
        checkpointEvery: config.checkpointSteps,
        environment: config.hasLowMemory ? memoryReturningEnvironment() : undefined,
        onEvents,
        onLoaded: (components, card) => (engine.device = logLoaded({ components, card }, { log, asked }).join(', ')),
      })),
  };
  return engine;
}

/** Its part of the memory, where others want it too. */
function sharedOf(
  { card, need }: { card: ModelCard; need: MemoryNeed },
  { memory, device, pid: read }: { memory: MemoryKeeper | undefined; device: Device; pid: () => number | undefined },
): WorkerEngine['shared'] {
  const readMemory = device.startsWith('cuda') ? readGpuMemory : readProcessMemory;
  const measure = async (): Promise<number | undefined> => {
    const pid = read();
    return pid === undefined ? undefined : readMemory(pid);
  };
  return memory && { place: memory.open({ model: card.id, ...need, measure }), card };
}

function withRoom(
  { card, asset, weightBytes, tokenBytes = 0 }: WorkerModel,
  { config, model, memory }: { config: Config<'worker'>; model: LoadModelOptions; memory: MemoryKeeper | undefined },
) {
  const availableBytes = Math.min(process.availableMemory(), memory?.budgetBytes ?? Infinity);
  const { slots: capacity, memoryTokens } = roomOf(card, { ...config, tokenBytes, availableBytes });
  const isText = memoryTokens !== undefined;
  const threads = config.numThreads || (isText && weightBytes < smallTextBytes ? 1 : undefined);
  const options = { ...model, ...(threads && { threads }), ...(isText && { maxTokens: capacity, memoryTokens }) };
  const cacheBytes = isText ? capacity * tokenBytes : 0;
  const need = estimateNeed(card, { weightBytes, cacheBytes, device: config.devices[0] });
  return { card: isText ? withinRoom(card as TextCard, capacity) : card, asset, capacity, options, need };
}

/** As an engine will say it: no text is longer than the room. */
function withinRoom(card: TextCard, tokens: number): TextCard {
  return { ...card, maxModelTokens: Math.min(card.maxModelTokens, tokens) };
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
    safetyChecker: config.safetyChecker,
    stepTokens: config.stepTokens,
  };
}
