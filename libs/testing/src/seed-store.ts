/** Brings a store into the initial state of a test, through the store's own functions. */
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

/** Admits a request; throws if it is refused. */
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
  const identity = { shard: model, workerId, incarnation };
  await registerWorker(store, identity, { state, capacity, info: { device: 'cpu' } });
  return identity;
}

/** Seeds a worker with a running request. */
export async function seedRunning(
  store: StoreConnection,
  { worker = {}, ...request }: SeedRequest & { worker?: SeedWorker } = {},
): Promise<{ worker: WorkerIdentity; delivery: Delivery }> {
  const identity = await seedWorker(store, worker);
  await seedRequest(store, { model: identity.shard, ...request });
  const [delivery] = await dispatchNext(store, 1, identity);
  if (delivery === undefined) throw new Error('no worker is free');
  return { worker: identity, delivery };
}

let batches = 0;

/** Writes one batch as a worker does. Returns the outcome of the last write. */
export async function writeNow(
  store: StoreConnection,
  worker: WorkerIdentity,
  ...writes: RequestWrite[]
): Promise<WriteOutcome | undefined> {
  return (await writeBatch(store, worker, writes, { batch: ++batches })).at(-1);
}

/** Moves a request's timestamps and deadlines into the past, ms. */
export async function backdateRequest(
  store: StoreConnection,
  { id, model }: RequestEnvelope,
  ms: number,
): Promise<void> {
  const keys = store.keysOf(model);
  for (const field of ['createdAtMs', 'sinceMs', 'deadlineMs', 'startDeadlineMs'])
    await store.redis.hincrby(keys.request(id), field, -ms);
  for (const index of [keys.waiting, keys.deadlines])
    if ((await store.redis.zscore(index, id)) !== null) await store.redis.zincrby(index, -ms, id);
}
