import { hostname } from 'node:os';
import { type Config, memoryReturningEnvironment, readVersion } from '@darkroom/config';
import type { PipelineComponent } from '@darkroom/core';
import { type LoadModelOptions, ProcessExecutor } from '@darkroom/executor';
import { type MainContext, runMain, type Service, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, openStore } from '@darkroom/store';
import { listGpus } from './engine/list-gpus.ts';
import { LoadWatch } from './engine/load-watch.ts';
import { logComponents } from './engine/log-components.ts';
import { readModel } from './engine/read-model.ts';
import { roomOf } from './engine/room.ts';

import { WorkerProcesses } from './processes/worker-processes.ts';
import { encoderOf } from './request/output-encoder.ts';
import { Worker } from './worker.ts';

await runMain('worker', async (context) => {
  const { config } = context;
  // With a number somebody else has dealt them out.
  const gpus = config.devices[0] === 'cuda' ? (config.cudaVisibleDevices ?? listGpus()) : [];
  const count = config.numWorkerProcesses ?? Math.max(1, gpus.length);
  if (count === 1) return createWorker(context);
  const { workerId, metricsPort } = config;
  const script = import.meta.filename;
  const processes = new WorkerProcesses({ count, gpus, workerId, metricsPort, script, log: context.log });
  context.readiness.check = () => processes.isReady;
  return processes;
});

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

async function createWorker(context: MainContext<'worker'>): Promise<Service> {
  const { config, log, metrics, readiness, stopSignal } = context;
  const model = modelOptions(config);
  const store = openStore(context);
  const loads = new LoadWatch({ store, model: config.modelId, host: hostname(), stopSignal, log });
  const { card, asset, tokenBytes } = await loads.watch(() => readModel(model, log));
  const { slots: capacity, memoryTokens } = roomOf(card, {
    ...config,
    tokenBytes,
    availableBytes: process.availableMemory(),
  });
  const engine = {
    model: { ...model, ...(memoryTokens !== undefined && { maxTokens: capacity, memoryTokens }) },
    maxSlots: capacity,
    checkpointEvery: config.checkpointSteps,
    environment: config.hasLowMemory ? memoryReturningEnvironment() : undefined,
  };
  const info = { host: hostname(), pid: process.pid, device: config.devices.join(', '), version: readVersion() };
  const onLoaded = (components: readonly PipelineComponent[]): void => {
    info.device = logComponents(components, { log, asked: config.devices }).join(', ');
  };
  const worker = new Worker({
    store,
    card,
    asset,
    workerId: config.workerId,
    capacity,
    chunkBytes: config.chunkBytes,
    heartbeatMs: config.heartbeatMs,
    engineTimeoutMs: config.engineTimeoutS * 1000,
    sleepAfterMs: config.sleepAfterS && config.sleepAfterS * 1000,
    stopSignal,
    info,
    log,
    metrics,
    encoder: encoderOf(card.kind),
    loads,
    createExecutor: (onEvents) => new ProcessExecutor({ ...engine, onEvents, onLoaded }),
  });
  readiness.check = () => worker.isReady;
  return new ServiceGroup([storeService({ store, check: () => checkServer(store), log, stopSignal }), worker]);
}
