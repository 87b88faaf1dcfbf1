/** Puts a store into a state that a test begins with, by the store's own functions. */
import type { RequestEnvelope } from '@darkroom/core';
import {
  admitRequest,
  type AdmitRequestOptions,
  type Delivery,
  registerWorker,
  type RequestWrite,
  type StoreConnection,
  type WorkerIdentity,
  writeBatch,
  type WriteOutcome,
} from '@darkroom/store';
import { dispatchNext } from './dispatch-next.ts';
import { testEnvelope } from './test-store.ts';

export type SeedRequest = Partial<RequestEnvelope> & { options?: Partial<AdmitRequestOptions> };

/** Admits a request that must come in. */
export async function seedRequest(
  store: StoreConnection,
  { options, ...overrides }: SeedRequest = {},
): Promise<RequestEnvelope> {
  const envelope = testEnvelope(overrides);
  const result = await admitRequest(store, envelope, { queueMaxLength: 100_000, unserved: 'accept', ...options });
  if (result.status !== 'admitted') throw new Error(`the request is ${result.status}`);
  return envelope;
}

export interface SeedWorker {
  model?: string;
  workerId?: string;
  incarnation?: string;
  capacity?: number;
  state?: 'loading' | 'ready' | 'asleep';
}

/** Registers a worker of 8 slots that sends no heartbeats. */
export async function seedWorker(
  store: StoreConnection,
  { model = 'tiny', workerId = 'w1', incarnation = 'first', capacity = 8, state = 'ready' }: SeedWorker = {},
): Promise<WorkerIdentity> {
  const identity = { model, workerId, incarnation };
  await registerWorker(store, identity, { state, capacity, info: { device: 'cpu' } });
  return identity;
}

/** Seeds a request that a worker of its own runs. */
export async function seedRunning(
  store: StoreConnection,
  { worker = {}, ...request }: SeedRequest & { worker?: SeedWorker } = {},
): Promise<{ worker: WorkerIdentity; delivery: Delivery }> {
  const identity = await seedWorker(store, worker);
  await seedRequest(store, { model: identity.model, ...request });
  const [delivery] = await dispatchNext(store, 1, identity);
  if (delivery === undefined) throw new Error('no worker is free');
  return { worker: identity, delivery };
}

let batches = 0;

/** Writes as a worker does, each time in a batch of its own. The outcome of the last. */
export async function write(
  store: StoreConnection,
  worker: WorkerIdentity,
  ...writes: RequestWrite[]
): Promise<WriteOutcome | undefined> {
  return (await writeBatch(store, worker, writes, { batch: ++batches })).at(-1);
}

/** Makes it so long ago that a request was admitted and came into its state, ms. */
export async function age(store: StoreConnection, { id, model }: RequestEnvelope, ms: number): Promise<void> {
  const keys = store.keysOf(model);
  for (const field of ['createdAtMs', 'sinceMs', 'deadlineMs', 'startDeadlineMs'])
    await store.redis.hincrby(keys.request(id), field, -ms);
  for (const index of [keys.waiting, keys.deadlines])
    if ((await store.redis.zscore(index, id)) !== null) await store.redis.zincrby(index, -ms, id);
}
