/** A worker against a real queue, with an engine that the test controls. */
import type { ModelCard, RequestEnvelope, RowRequest } from '@darkroom/core';
import type { EncodedOutput, Executor, ExecutorEvent } from '@darkroom/executor';
import { Metrics } from '@darkroom/service';
import {
  admitRequest,
  dispatchRequests,
  readEvents,
  readRequest,
  readStats,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, onTestFinished } from 'vitest';
import { LoadWatch } from '../../apps/worker/src/engine/load-watch.ts';
import type { EncodingKinds } from '../../apps/worker/src/request/output-encoder.ts';
import { Worker } from '../../apps/worker/src/worker/worker.ts';
import type { WorkerOptions } from '../../apps/worker/src/worker/worker-options.ts';

export const card = { id: 'tiny' } as ModelCard;
export const pixels = { data: Uint8Array.of(1, 2, 3), facts: { seed: 7 } };

export type Encoded = EncodedOutput;
type Encoding = ReturnType<EncodingKinds['of']>;

export class FakeExecutor implements Executor {
  readonly submitted: RowRequest[] = [];
  readonly canceled: string[] = [];
  starting: () => Promise<ModelCard> = () => Promise.resolve(card);
  card = card;
  isRunning = false;
  readonly emit: (events: readonly ExecutorEvent[]) => void;

  constructor(emit: (events: readonly ExecutorEvent[]) => void) {
    this.emit = emit;
  }
  async start(): Promise<ModelCard> {
    await this.starting();
    this.isRunning = true;
    return this.card;
  }
  submit(requests: readonly RowRequest[]): void {
    if (!this.isRunning) throw new Error('the engine is not running');
    this.submitted.push(...requests);
  }
  cancel(requestId: string): void {
    this.canceled.push(requestId);
  }
  /** Called by the heartbeat that finds the engine hanging. */
  kill(): void {
    this.lose(...this.submitted.map(({ id }) => id));
  }
  checkHealth(): ReturnType<Executor['checkHealth']> {
    return Promise.resolve({ isHealthy: this.isRunning, slots: 0, waitingRequests: 0, latencyMs: 0 });
  }
  shutdown(): Promise<void> {
    this.isRunning = false;
    return Promise.resolve();
  }
  lose(...requestIds: string[]): void {
    this.isRunning = false;
    this.emit([{ type: 'engine-lost', message: 'killed', requestIds }]);
  }
  complete(requestId: string, index = 0): void {
    this.emit([
      { type: 'output', requestId, index, output: pixels },
      { type: 'request-done', requestId },
    ]);
  }
}

export interface Bench {
  store: StoreConnection;
  worker: Worker;
  executor: FakeExecutor;
  /** The worker's options, which it reads again before each load. */
  options: WorkerOptions;
}

type CreateExecutor = (listener: (events: readonly ExecutorEvent[]) => void) => Executor;

/** Returns kinds that encode outputs by a function, and previews at once. */
export function kindsOf(
  encode: Encoding['encode'] = () => Promise.resolve({ data: pixels.data, contentType: 'x/y' }),
  encodePreview: Encoding['encodePreview'] = () => Promise.resolve({ data: pixels.data, contentType: 'x/y' }),
): EncodingKinds {
  return { of: () => ({ encode, encodePreview }) };
}

export function optionsOf(store: StoreConnection, createExecutor: CreateExecutor): WorkerOptions {
  return {
    store,
    card,
    workerId: 'w1',
    capacity: 4,
    heartbeatMs: 600_000,
    engineTimeoutMs: 60_000,
    info: {},
    log: silentLogger(),
    metrics: new Metrics({ app: 'worker', log: silentLogger() }),
    loads: new LoadWatch({ store, model: 'tiny', host: 'box', log: silentLogger() }),
    kinds: kindsOf(),
    restart: () => {},
    createExecutor,
  };
}

/** Opens a worker with a store of its own and a fake engine. `options` override the defaults. */
export function openBench({ store = openTestStore(), ...options }: Partial<WorkerOptions> = {}): Bench {
  let executor: FakeExecutor | undefined;
  const defaults = optionsOf(store, (listener) => (executor = new FakeExecutor(listener)));
  const all = { ...defaults, ...options };
  const worker = new Worker(all);
  onTestFinished(() => worker.stop());
  return { store, worker, executor: executor!, options: all };
}

/** Opens a worker and starts it. */
export async function startBench(options?: Partial<WorkerOptions>): Promise<Bench> {
  const bench = openBench(options);
  await bench.worker.start();
  return bench;
}

/** Starts a worker with one request in its engine. */
export async function openBusy(options?: Partial<WorkerOptions>): Promise<Bench & { id: string }> {
  const bench = await startBench(options);
  const id = await submit(bench.store);
  await lease(bench.store, id);
  await expect.poll(() => bench.executor.submitted).toHaveLength(1);
  return { ...bench, id };
}

export async function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<string> {
  const envelope = testEnvelope(overrides);
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

export async function lease(
  store: StoreConnection,
  id: string,
  meanwhile: () => void = () => {},
  workerId = 'w1',
): Promise<void> {
  const leasing = dispatchRequests(store, 'tiny', [{ workerId, isExclusive: false, requestIds: [id] }]);
  meanwhile();
  expect(await leasing).toMatchObject([{ status: 'leased' }]);
}

export function free(store: StoreConnection): Promise<unknown> {
  return readStats(store, 'tiny').then(({ workers, freeSlots }) => [workers.idle, freeSlots]);
}

/** Returns the states that the model's workers have. */
export async function workerStates(store: StoreConnection, model = 'tiny'): Promise<string[]> {
  const { workers } = await readStats(store, model);
  return Object.entries(workers).flatMap(([state, count]) => (count > 0 ? [state] : []));
}

export async function types(store: StoreConnection, id: string): Promise<string[]> {
  return (await readEvents(store, id, { after: 0 })).map(({ type }) => type);
}

export async function stateOf(store: StoreConnection, id: string): Promise<string> {
  const result = await readRequest(store, id);
  return result.status === 'found' ? result.request.state : result.status;
}
