/** A worker against a real queue, with an engine that does what the test says. */
import type { ModelCard, RequestEnvelope, RowRequest } from '@darkroom/core';
import type { Executor, ExecutorEvent } from '@darkroom/executor';
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
import type { OutputEncoder } from '../../apps/worker/src/request/output-encoder.ts';
import { Worker } from '../../apps/worker/src/worker.ts';
import type { WorkerOptions } from '../../apps/worker/src/worker-options.ts';

export const card = { id: 'tiny' } as ModelCard;
export const pixels = { data: Uint8Array.of(1, 2, 3), facts: { seed: 7 } };

export type Encoded = Awaited<ReturnType<OutputEncoder['encodeOutput']>>;

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
  /** By the heartbeats that found it hanging. */
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
  /** What the worker was made from, and looks at again before each load. */
  options: WorkerOptions;
}

type CreateExecutor = (listener: (events: readonly ExecutorEvent[]) => void) => Executor;

/** One that encodes previews in no time. */
export function encoderOf(
  encodeOutput: OutputEncoder['encodeOutput'] = () => Promise.resolve({ data: pixels.data, contentType: 'x/y' }),
): OutputEncoder {
  return { encodeOutput, encodePreview: () => Promise.resolve({ data: pixels.data, contentType: 'x/y' }) };
}

export function optionsOf(store: StoreConnection, createExecutor: CreateExecutor): WorkerOptions {
  return {
    store,
    card,
    workerId: 'w1',
    capacity: 4,
    chunkBytes: 400_000,
    heartbeatMs: 600_000,
    engineTimeoutMs: 60_000,
    info: {},
    log: silentLogger(),
    metrics: new Metrics({ app: 'worker', log: silentLogger() }),
    loads: new LoadWatch({ store, model: 'tiny', host: 'box', log: silentLogger() }),
    encoder: encoderOf(),
    createExecutor,
  };
}

/** A worker over a store of its own, with an engine that the test plays; `options` in place of its own. */
export function openBench({ store = openTestStore(), ...options }: Partial<WorkerOptions> = {}): Bench {
  let executor: FakeExecutor | undefined;
  const defaults = optionsOf(store, (listener) => (executor = new FakeExecutor(listener)));
  const all = { ...defaults, ...options };
  const worker = new Worker(all);
  onTestFinished(() => worker.stop());
  return { store, worker, executor: executor!, options: all };
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

export async function types(store: StoreConnection, id: string): Promise<string[]> {
  return (await readEvents(store, id, { after: 0 })).map(({ type }) => type);
}

export async function stateOf(store: StoreConnection, id: string): Promise<string> {
  const result = await readRequest(store, id);
  return result.status === 'found' ? result.request.state : result.status;
}
