/**
 * A test bench: several models share the memory of one process, with a real queue and engines that the test controls.
 */
import type { ModelCard } from '@darkroom/core';
import { dispatchRequests, type StoreConnection } from '@darkroom/store';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, onTestFinished } from 'vitest';
import { LoadWatch } from '../../apps/worker/src/engine/load-watch.ts';
import { MemoryKeeper } from '../../apps/worker/src/memory/memory-keeper.ts';
import { RestartableWorker } from '../../apps/worker/src/models/restartable-worker.ts';
import { Worker } from '../../apps/worker/src/worker/worker.ts';
import { FakeExecutor, optionsOf, submit } from './worker-bench.ts';

class ModelExecutor extends FakeExecutor {
  readonly id: string;
  loads = 0;
  /** The size that is measured after loading. */
  bytes: number;

  constructor(emit: FakeExecutor['emit'], { id, bytes }: { id: string; bytes: number }) {
    super(emit);
    this.id = id;
    this.bytes = bytes;
  }
  override async start(): Promise<ModelCard> {
    this.loads++;
    await super.start();
    return { id: this.id } as ModelCard;
  }
  /** Holds the next load until the test fails it. */
  holdLoad(): { fail: () => void } {
    let reject!: (error: Error) => void;
    const loading = new Promise<ModelCard>((_resolve, fail) => (reject = fail));
    const { starting } = this;
    this.starting = () => {
      this.starting = starting;
      return loading;
    };
    return { fail: () => reject(new Error('a bad file')) };
  }
}

export interface ModelsBench {
  store: StoreConnection;
  worker: (model: string) => Worker;
  executor: (model: string) => ModelExecutor;
  /** Submits a request and leases it to its model's worker. Resolves with its id. */
  leaseRequest: (model: string) => Promise<string>;
  /** Like `leaseRequest`, and waits until the engine has `count` requests. */
  runRequest: (model: string, count?: number) => Promise<string>;
  /** Completes all requests of the model's engine and waits until its worker has none. */
  completeAll: (model: string) => Promise<void>;
  /** Models in memory. */
  awake: () => string[];
  keeper: MemoryKeeper;
}

/** Starts a sleeping worker per model. `sizes`: bytes by model id; `estimates`: bytes assumed before loading. */
export async function openModels(
  sizes: Readonly<Record<string, number>>,
  {
    budget,
    maxWaitMs = 600_000,
    estimates = sizes,
    store = openTestStore(),
    host = 'w',
  }: {
    budget: number;
    maxWaitMs?: number;
    estimates?: Readonly<Record<string, number>>;
    /** Pass one to share it between benches, as between machines. */
    store?: StoreConnection;
    /** Prefix of the worker ids. */
    host?: string;
  },
): Promise<ModelsBench> {
  const keeper = new MemoryKeeper({ budgetBytes: budget, maxWaitMs, measureEveryMs: 0, log: silentLogger() });
  const models = new Map<string, { worker: Worker; executor: ModelExecutor }>();
  const createWorker = (id: string, restart: () => void): Worker => {
    let executor: ModelExecutor | undefined;
    const allocation = keeper.open({
      model: id,
      minBytes: 0,
      estimatedBytes: estimates[id]!,
      cacheBytes: 0,
      measure: () => Promise.resolve(executor?.isRunning ? executor.bytes : undefined),
    });
    const card = { id } as ModelCard;
    const worker = new Worker({
      ...optionsOf(store, (listener) => (executor = new ModelExecutor(listener, { id, bytes: sizes[id]! }))),
      card,
      workerId: `${host}-${id}`,
      shared: { allocation, card },
      retryMs: { firstMs: 5, maxMs: 5 },
      loads: new LoadWatch({ store, model: id, host: 'box', log: silentLogger() }),
      restart,
    });
    models.set(id, { worker, executor: executor! });
    return worker;
  };
  for (const id of Object.keys(sizes)) {
    const service = new RestartableWorker({
      store,
      holder: { model: id, workerId: `${host}-${id}` },
      createWorker: (restart) => Promise.resolve(createWorker(id, restart)),
      log: silentLogger(),
    });
    onTestFinished(() => service.stop());
    await service.start();
  }
  const executor = (model: string): ModelExecutor => models.get(model)!.executor;
  const leaseRequest = async (model: string): Promise<string> => {
    const id = await submit(store, { model });
    const lease = { workerId: `${host}-${model}`, isExclusive: false, requestIds: [id] };
    expect(await dispatchRequests(store, model, [lease])).toMatchObject([{ status: 'leased' }]);
    return id;
  };
  return {
    store,
    keeper,
    worker: (model) => models.get(model)!.worker,
    executor,
    leaseRequest,
    runRequest: async (model, count = 1) => {
      const id = await leaseRequest(model);
      await expect.poll(() => executor(model).submitted).toHaveLength(count);
      return id;
    },
    completeAll: async (model) => {
      const { submitted } = executor(model);
      for (const { id } of submitted.splice(0)) executor(model).complete(id);
      await expect.poll(() => models.get(model)!.worker.requestIds).toEqual([]);
    },
    awake: () => [...models].filter(([, one]) => one.executor.isRunning).map(([id]) => id),
  };
}
