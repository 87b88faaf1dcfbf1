/** Several models of one process that share its memory, against a real queue, with engines that do what the test says. */
import type { ModelCard } from '@darkroom/core';
import { dispatchRequests, type StoreConnection } from '@darkroom/store';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, onTestFinished } from 'vitest';
import { LoadWatch } from '../../apps/worker/src/engine/load-watch.ts';
import { MemoryKeeper } from '../../apps/worker/src/memory/memory-keeper.ts';
import { Worker } from '../../apps/worker/src/worker.ts';
import { FakeExecutor, optionsOf, submit } from './worker-bench.ts';

class ModelExecutor extends FakeExecutor {
  readonly id: string;
  loads = 0;
  /** As it is measured once it is loaded. */
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
  /** The next load fails when the test says so. */
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
  /** A request that was leased to its model's worker. */
  ask: (model: string) => Promise<string>;
  /** The model's worker has nothing that was leased to it. */
  completeAll: (model: string) => Promise<void>;
  /** Those in memory. */
  awake: () => string[];
  keeper: MemoryKeeper;
}

/** Started, and asleep: models by id, with what each takes; `thought` is what it is thought to take. */
export async function openModels(
  sizes: Readonly<Record<string, number>>,
  {
    budget,
    maxWaitMs = 600_000,
    thought = sizes,
    store = openTestStore(),
    host = 'w',
  }: {
    budget: number;
    maxWaitMs?: number;
    thought?: Readonly<Record<string, number>>;
    /** What several machines share. */
    store?: StoreConnection;
    /** What the ids of workers begin with. */
    host?: string;
  },
): Promise<ModelsBench> {
  const keeper = new MemoryKeeper({ budgetBytes: budget, maxWaitMs, measureEveryMs: 0, log: silentLogger() });
  const models = new Map<string, { worker: Worker; executor: ModelExecutor }>();
  for (const [id, bytes] of Object.entries(sizes)) {
    let executor: ModelExecutor | undefined;
    const estimatedBytes = thought[id]!;
    const place = keeper.open({
      model: id,
      leastBytes: 0,
      estimatedBytes,
      cacheBytes: 0,
      measure: () => Promise.resolve(executor?.isRunning ? executor.bytes : undefined),
    });
    const card = { id } as ModelCard;
    const worker = new Worker({
      ...optionsOf(store, (listener) => (executor = new ModelExecutor(listener, { id, bytes }))),
      card,
      workerId: `${host}-${id}`,
      shared: { place, card },
      retryMs: { firstMs: 5, mostMs: 5 },
      loads: new LoadWatch({ store, model: id, host: 'box', log: silentLogger() }),
    });
    onTestFinished(() => worker.stop());
    models.set(id, { worker, executor: executor! });
    await worker.start();
  }
  const executor = (model: string): ModelExecutor => models.get(model)!.executor;
  return {
    store,
    keeper,
    worker: (model) => models.get(model)!.worker,
    executor,
    ask: async (model) => {
      const id = await submit(store, { model });
      const lease = { workerId: `${host}-${model}`, isExclusive: false, requestIds: [id] };
      expect(await dispatchRequests(store, model, [lease])).toMatchObject([{ status: 'leased' }]);
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
