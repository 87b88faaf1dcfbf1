import { hostname } from 'node:os';
import type { PictureInput } from '@darkroom/core';
import { encodePicture, encodePreview } from '@darkroom/diffusion/encode';
import { ProcessExecutor } from '@darkroom/executor';
import { closingService, type MainContext, runMain, type Service, ServiceGroup, startupCheck } from '@darkroom/service';
import { checkServer, connectStore, storeOptions } from '@darkroom/store';
import { listGpus } from './list-gpus.ts';
import { LoadWatch } from './load-watch.ts';
import { readModel } from './read-model.ts';
import { readVersion } from './read-version.ts';
import { WorkerProcesses } from './worker-processes.ts';
import { Worker } from './worker.ts';

await runMain('worker', async (context) => {
  const { config } = context;
  const gpus = config.device === 'cuda' ? (config.cudaVisibleDevices ?? listGpus()) : [];
  const count = config.numWorkerProcesses ?? Math.max(1, gpus.length);
  return count === 1 ? createWorker(context) : superviseWorkers(context, count, gpus);
});

function superviseWorkers({ config, log, readiness }: MainContext<'worker'>, count: number, gpus: string[]): Service {
  const { workerId, metricsPort } = config;
  const processes = new WorkerProcesses({ count, gpus, workerId, metricsPort, script: import.meta.filename, log });
  readiness.check = () => processes.isReady;
  return processes;
}

async function createWorker({ config, log, metrics, readiness, stopSignal }: MainContext<'worker'>): Promise<Service> {
  const model = {
    directory: config.modelDir,
    id: config.modelId,
    dtypes: config.modelDtype,
    device: config.device,
    ...(config.numThreads === 0 ? {} : { threads: config.numThreads }),
  };
  const onError = (error: Error): void => log.warn({ reason: error.message }, 'no connection to Redis');
  const store = connectStore({ ...storeOptions(config, onError), stopSignal });
  const loads = new LoadWatch({ store, model: config.modelId, host: hostname(), stopSignal, log });
  const { card } = await loads.watch(() => readModel(config.modelDir, model, log));
  const worker = new Worker({
    store,
    card,
    workerId: config.workerId,
    capacity: config.batchMaxSize,
    chunkBytes: config.chunkBytes,
    lockMs: config.lockMs,
    heartbeatMs: config.heartbeatMs,
    ttlMs: config.workerTtlMs,
    engineTimeoutMs: config.engineTimeoutS * 1000,
    stopSignal,
    info: { host: hostname(), pid: process.pid, device: config.device, version: readVersion() },
    log,
    metrics,
    encoder: {
      // The API's schema is what wrote it, and the pipeline has checked it by now.
      encodeOutput: (input, output) => encodePicture(output, input as PictureInput),
      encodePreview,
    },
    loads,
    createExecutor: (onEvents) =>
      new ProcessExecutor({ model, maxRows: config.batchMaxSize, checkpointEvery: config.checkpointSteps, onEvents }),
  });
  readiness.check = () => worker.isReady;
  const checked = startupCheck({ check: () => checkServer(store), log, stopSignal });
  return new ServiceGroup([closingService(() => store.close()), checked, worker]);
}
