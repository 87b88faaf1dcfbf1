import type { WorkerPace } from '@darkroom/core';
import type { Delivery } from './lease-batch.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** Who a worker is. The id may be used again by its next life; the incarnation tells the two apart. */
export interface WorkerIdentity {
  model: string;
  workerId: string;
  incarnation: string;
}

export interface WorkerAnnouncement {
  state: 'loading' | 'ready';
  /** Rows it can step at once. */
  capacity: number;
  /** The worker counts as dead when no heartbeat has come for so long, ms. */
  ttlMs: number;
  /** Shown to operators: device, host, pid, version. */
  info: Readonly<Record<string, string | number>>;
  nowMs?: number;
}

/** Announces a worker, or says that it has loaded and takes leases from now on. */
export async function registerWorker(
  store: StoreConnection,
  { model, workerId, incarnation }: WorkerIdentity,
  { state, capacity, ttlMs, info, nowMs = Date.now() }: WorkerAnnouncement,
): Promise<void> {
  const { base } = store.keysOf(model);
  const details = JSON.stringify(info);
  await runScript(store.redis, 'register-worker', base, workerId, incarnation, state, capacity, nowMs, ttlMs, details);
}

export interface Heartbeat {
  ttlMs: number;
  /** How fast it is, once that is known. */
  pace?: WorkerPace | undefined;
  /** What it has. Its locks are its own again when they ran out while Redis was away. */
  has?: readonly Delivery[];
  nowMs?: number;
}

/** Keeps a worker alive and ends its leases whose lock is lost. `buried`: it was taken for dead, what it had is given to others, and it must register again. */
export async function heartbeatWorker(
  store: StoreConnection,
  { model, workerId, incarnation }: WorkerIdentity,
  { ttlMs, pace, has = [], nowMs = Date.now() }: Heartbeat,
): Promise<'alive' | 'buried'> {
  const { base } = store.keysOf(model);
  const measured = pace === undefined ? '' : JSON.stringify(pace);
  const values = [workerId, incarnation, ttlMs, nowMs, measured, ...has.map(({ id, token }) => `${id} ${token}`)];
  const reply = await runScript(store.redis, 'heartbeat-worker', base, ...values);
  return reply as 'alive' | 'buried';
}

/** No more leases for a worker that stops; what it has it keeps, and `drained` comes last in its inbox. False when it is not registered any more. */
export async function drainWorker(
  store: StoreConnection,
  { model, workerId, incarnation }: WorkerIdentity,
  nowMs: number = Date.now(),
): Promise<boolean> {
  return (await runScript(store.redis, 'drain-worker', store.keysOf(model).base, workerId, incarnation, nowMs)) === 1;
}

/** The end of a worker that stops by itself. Anything it still had is requeued by the next stalled check. */
export async function unregisterWorker(
  store: StoreConnection,
  { model, workerId, incarnation }: WorkerIdentity,
): Promise<void> {
  await runScript(store.redis, 'unregister-worker', store.keysOf(model).base, workerId, incarnation);
}

export interface BuryOptions {
  /** A pause between two sweeps, by whomever, after which silence means nothing: Redis was away. */
  pauseMs: number;
  /** How long workers may take to speak after that. After half of it: as long as the pause was, unless they were just given time. */
  forgiveMs: number;
}

/** `forgiving`: Redis was away a moment ago, so nobody is taken for dead. */
export type BuryResult =
  | { status: 'forgiving' }
  | { status: 'buried'; workers: { workerId: string; requests: number }[] };

/** Removes the workers of a model whose heartbeats stopped, and drops the locks of what they had. Safe to run anywhere, any time. */
export async function buryWorkers(
  store: StoreConnection,
  model: string,
  { pauseMs, forgiveMs }: BuryOptions,
): Promise<BuryResult> {
  const reply = await runScript(store.redis, 'bury-workers', store.keysOf(model).base, pauseMs, forgiveMs);
  const [status, ...pairs] = reply as ['forgiving' | 'buried', ...(string | number)[]];
  if (status === 'forgiving') return { status };
  const workers: { workerId: string; requests: number }[] = [];
  for (let position = 0; position + 1 < pairs.length; position += 2)
    workers.push({ workerId: String(pairs[position]), requests: Number(pairs[position + 1]) });
  return { status, workers };
}
