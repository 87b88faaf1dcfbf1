import { hostname } from 'node:os';
import { readVersion } from '@darkroom/config';
import { type MainContext, runMain, type Service, ServiceGroup, storeService } from '@darkroom/service';
import { checkServer, openStore } from '@darkroom/store';
import { listGpus } from './engine/list-gpus.ts';
import { LoadWatch } from './engine/load-watch.ts';
import { processEngine } from './engine/process-engine.ts';
import { upstreamEngine } from './engine/upstream-engine.ts';
import type { WorkerEngine } from './engine/worker-engine.ts';
import { WorkerProcesses } from './processes/worker-processes.ts';
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

async function createWorker(context: MainContext<'worker'>): Promise<Service> {
  const { config, log, metrics, readiness, stopSignal } = context;
  const store = openStore(context);
  const loads = new LoadWatch({ store, model: config.modelId, host: hostname(), stopSignal, log });
  const engine = await openEngine(context, loads);
  const { card, asset, files, prepare, capacity, encoder, createExecutor } = engine;
  const info = {
    host: hostname(),
    pid: process.pid,
    get device() {
      return engine.device;
    },
    version: readVersion(),
  };
  const worker = new Worker({
    store,
    card,
    asset,
    files,
    prepare,
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
    encoder,
    loads,
    createExecutor,
  });
  readiness.check = () => worker.isReady;
  return new ServiceGroup([storeService({ store, check: () => checkServer(store), log, stopSignal }), worker]);
}

/** What EXECUTOR names. */
function openEngine({ config, log }: MainContext<'worker'>, loads: LoadWatch): Promise<WorkerEngine> | WorkerEngine {
  switch (config.executor) {
    case 'process':
      return processEngine(config, loads, log);
    case 'http':
      return upstreamEngine(config, loads);
  }
}
