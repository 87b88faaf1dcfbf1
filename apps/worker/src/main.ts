import { hostname } from 'node:os';
import { basename } from 'node:path';
import { type Config, readVersion } from '@darkroom/config';
import { JudgedExecutor } from '@darkroom/executor';
import { type MainContext, runMain, type Service, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, openStore, type StoreConnection } from '@darkroom/store';
import { listGpus } from './engine/list-gpus.ts';
import { LoadWatch } from './engine/load-watch.ts';
import { ownEngine } from './engine/own-engine.ts';
import { processEngine, type ProcessEngineOptions } from './engine/process-engine.ts';
import { upstreamEngine } from './engine/upstream-engine.ts';
import type { WorkerEngine } from './engine/worker-engine.ts';
import { MemoryKeeper } from './memory/memory-keeper.ts';
import { createMemorySeries } from './memory/memory-series.ts';
import { ModelWorkers, workerIdOf } from './models/model-workers.ts';
import { WorkerProcesses } from './processes/worker-processes.ts';
import { Worker } from './worker.ts';

await runMain('worker', async (context) => {
  const { config } = context;
  // With a number somebody else has dealt them out.
  const gpus = config.devices[0] === 'cuda' ? (config.cudaVisibleDevices ?? listGpus()) : [];
  const count = config.numWorkerProcesses ?? Math.max(1, gpus.length);
  if (count === 1) return createService(context);
  const { workerId, metricsPort } = config;
  const script = import.meta.filename;
  const processes = new WorkerProcesses({ count, gpus, workerId, metricsPort, script, log: context.log });
  context.readiness.check = () => processes.isReady;
  return processes;
});

async function createService(context: MainContext<'worker'>): Promise<Service> {
  const { config, log, readiness, stopSignal } = context;
  const store = openStore(context);
  const workers =
    config.modelDirs === undefined
      ? await createWorker(context, { store })
      : createModelWorkers(context, { store, directories: config.modelDirs });
  readiness.check = () => workers.isReady;
  return new ServiceGroup([storeService({ store, check: () => checkServer(store), log, stopSignal }), workers]);
}

/** Of the directories of MODEL_DIRS. */
function createModelWorkers(
  context: MainContext<'worker'>,
  { store, directories }: { store: StoreConnection; directories: readonly string[] },
): ModelWorkers {
  const { config, log, stopSignal } = context;
  const memory = openMemory(context);
  const createOne = (modelDir: string): Promise<Worker> => {
    const modelId = basename(modelDir);
    const own = { ...config, modelDir, modelId, workerId: workerIdOf(config.workerId, modelId) };
    return createWorker({ ...context, config: own }, { store, memory });
  };
  return new ModelWorkers({ directories, createWorker: createOne, stopSignal, log });
}

/** What the models share, if there is less of it than all of them may want. */
function openMemory({ config, log, metrics }: MainContext<'worker'>): MemoryKeeper | undefined {
  const { memoryBudgetMb, coldStartMaxWaitS } = config;
  if (memoryBudgetMb === undefined) return undefined;
  const series = createMemorySeries(metrics);
  return new MemoryKeeper({
    budgetBytes: memoryBudgetMb * 1e6,
    maxWaitMs: coldStartMaxWaitS * 1000,
    onLoaded: (model) => series.loads.inc({ model }),
    onHeld: (model, bytes) => series.memory.set({ model }, bytes),
    log,
  });
}

async function createWorker(
  { config, log, metrics, stopSignal }: MainContext<'worker'>,
  { store, memory }: { store: StoreConnection; memory?: MemoryKeeper | undefined },
): Promise<Worker> {
  const loads = new LoadWatch({ store, model: config.modelId, host: hostname(), stopSignal, log });
  const engine = await openEngine(config, { loads, memory, log });
  const { card, files, prepare, shared, encoder } = engine;
  const info = {
    host: hostname(),
    pid: process.pid,
    get device() {
      return engine.device;
    },
    version: readVersion(),
  };
  return new Worker({
    store,
    card,
    get asset() {
      return engine.asset;
    },
    get capacity() {
      return engine.capacity;
    },
    files,
    prepare,
    shared,
    workerId: config.workerId,
    chunkBytes: config.chunkBytes,
    heartbeatMs: config.heartbeatMs,
    engineTimeoutMs: config.engineTimeoutS * 1000,
    sleepAfterMs: config.sleepAfterS && config.sleepAfterS * 1000,
    stopSignal,
    info,
    log,
    metrics,
    encoder,
    loads,
    createExecutor: judged(config, engine),
  });
}

/** By what JUDGE names, if it names anybody. */
function judged(
  { judge: module, judgeTimeoutS, modelId: model }: Config<'worker'>,
  { createExecutor }: WorkerEngine,
): WorkerEngine['createExecutor'] {
  if (module === undefined) return createExecutor;
  const judge = { module, model, timeoutMs: judgeTimeoutS * 1000 };
  return (onEvents) => new JudgedExecutor({ ...judge, createExecutor, onEvents });
}

/** What EXECUTOR names. */
function openEngine(config: Config<'worker'>, options: ProcessEngineOptions): Promise<WorkerEngine> | WorkerEngine {
  switch (config.executor) {
    case 'process':
      return processEngine(config, options);
    case 'http':
      return upstreamEngine(config, options.loads);
    default:
      return ownEngine(config);
  }
}
