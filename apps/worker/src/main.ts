import { hostname } from 'node:os';
import { basename } from 'node:path';
import { type Config, heartbeatMs, modelDirProblem, readVersion } from '@darkroom/config';
import { engineKinds, JudgedExecutor, judgeTimeoutOf } from '@darkroom/executor';
import {
  invalidSettingsExitCode,
  type MainContext,
  runMain,
  type Service,
  ServiceGroup,
  storeService,
} from '@darkroom/service';
import { checkServer, openStore, type StoreConnection } from '@darkroom/store';
import { LoadWatch } from './engine/load-watch.ts';
import { moduleEngine } from './engine/module-engine.ts';
import { processEngine, type ProcessEngineOptions } from './engine/process-engine.ts';
import { pythonEngine } from './engine/python-engine.ts';
import { upstreamEngine } from './engine/upstream-engine.ts';
import type { Restart, WorkerEngine } from './engine/worker-engine.ts';
import { MemoryKeeper } from './memory/memory-keeper.ts';
import { createMemorySeries } from './meters/worker-series.ts';
import { ModelWorkers, workerIdOf } from './models/model-workers.ts';
import { RestartableWorker } from './models/restartable-worker.ts';
import { listGpus, WorkerProcesses } from './processes/worker-processes.ts';
import { Worker } from './worker/worker.ts';

/** Time for which a model of MODEL_DIRS waits for memory that busy models use, ms; then one of them is drained. */
const maxMemoryWaitMs = 30_000;

await runMain('worker', async (context) => {
  const { config, log, stopSignal } = context;
  const problem = modelDirProblem(config);
  if (problem !== undefined) {
    process.stderr.write(`worker: ${problem}\n`);
    process.exit(invalidSettingsExitCode);
  }
  // A child process has NUM_WORKER_PROCESSES 1 and its GPU in CUDA_VISIBLE_DEVICES.
  const gpus = config.devices[0] === 'cuda' ? (config.cudaVisibleDevices ?? listGpus()) : [];
  const count = config.numWorkerProcesses ?? Math.max(1, gpus.length);
  if (count === 1) return createService(context);
  const { workerId, metricsPort } = config;
  const script = import.meta.filename;
  const processes = new WorkerProcesses({ count, gpus, workerId, metricsPort, script, log, stopSignal });
  context.readiness.check = () => processes.isReady;
  return processes;
});

async function createService(context: MainContext<'worker'>): Promise<Service> {
  const { config, log, readiness, stopSignal } = context;
  const store = openStore(context);
  const workers =
    config.modelDirs === undefined
      ? restartableWorker(context, { store })
      : createModelWorkers(context, { store, directories: config.modelDirs });
  readiness.check = () => workers.isReady;
  return new ServiceGroup([storeService({ store, check: () => checkServer(store), log, stopSignal }), workers]);
}

/** Serves the models in MODEL_DIRS. */
function createModelWorkers(
  context: MainContext<'worker'>,
  { store, directories }: { store: StoreConnection; directories: readonly string[] },
): ModelWorkers {
  const { config, log, stopSignal } = context;
  const memory = openMemory(context);
  const createOne = (modelDir: string): RestartableWorker => {
    const modelId = basename(modelDir);
    const own = { ...config, modelDir, modelId, workerId: workerIdOf(config.workerId, modelId) };
    return restartableWorker({ ...context, config: own }, { store, memory });
  };
  return new ModelWorkers({ directories, createWorker: createOne, stopSignal, log });
}

/** Creates the memory budget that the models share, if one is configured. */
function openMemory({ config, log, metrics }: MainContext<'worker'>): MemoryKeeper | undefined {
  const { memoryBudgetMb } = config;
  if (memoryBudgetMb === undefined) return undefined;
  const series = createMemorySeries(metrics);
  return new MemoryKeeper({
    budgetBytes: memoryBudgetMb * 1e6,
    maxWaitMs: maxMemoryWaitMs,
    onLoaded: (model) => series.loads.inc({ model }),
    onMemoryChange: (model, bytes) => series.memory.set({ model }, bytes),
    log,
  });
}

interface WorkerParts {
  store: StoreConnection;
  memory?: MemoryKeeper;
}

function restartableWorker(context: MainContext<'worker'>, parts: WorkerParts): RestartableWorker {
  const { config, log } = context;
  const holder = { model: config.modelId, workerId: config.workerId };
  return new RestartableWorker({
    store: parts.store,
    holder,
    createWorker: (restart) => createWorker(context, { ...parts, restart }),
    log,
  });
}

async function createWorker(
  { config, log, metrics, stopSignal }: MainContext<'worker'>,
  { store, memory, restart }: WorkerParts & { restart: Restart },
): Promise<Worker> {
  const loads = new LoadWatch({ store, model: config.modelId, host: hostname(), stopSignal, log });
  const options = { kinds: engineKinds, loads, restart, memory, log };
  const engine = await loads.watch(async () => openEngine(config, options));
  const info = {
    host: hostname(),
    pid: process.pid,
    get device() {
      return engine.device;
    },
    version: readVersion(),
  };
  return new Worker({
    ...engine,
    store,
    workerId: config.workerId,
    heartbeatMs,
    engineTimeoutMs: config.engineTimeoutS * 1000,
    sleepAfterMs: config.sleepAfterS && config.sleepAfterS * 1000,
    stopSignal,
    info,
    log,
    metrics,
    kinds: engineKinds,
    loads,
    restart,
    createExecutor: judged(config, engine),
  });
}

/** Wraps the executor with the moderation module named by JUDGE, if it is set. */
function judged(
  { judge: module, engineTimeoutS, modelId: model }: Config<'worker'>,
  { createExecutor }: WorkerEngine,
): WorkerEngine['createExecutor'] {
  if (module === undefined) return createExecutor;
  const judge = { module, model, timeoutMs: judgeTimeoutOf(engineTimeoutS) };
  return (onEvents) => new JudgedExecutor({ ...judge, createExecutor, onEvents });
}

/** Creates the engine selected by EXECUTOR. */
function openEngine(config: Config<'worker'>, options: ProcessEngineOptions): Promise<WorkerEngine> | WorkerEngine {
  switch (config.executor) {
    case 'process':
      return processEngine(config, options);
    case 'http':
      return upstreamEngine(config, options.loads);
    case 'python':
      return pythonEngine(config);
    default:
      return moduleEngine(config);
  }
}
