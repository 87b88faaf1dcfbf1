import type { WorkerPace } from '@darkroom/core';
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
  nowMs?: number;
}

/** Keeps a worker alive and ends its leases whose lock is lost. `buried`: it was taken for dead, what it had is given to others, and it must register again. */
export async function heartbeatWorker(
  store: StoreConnection,
  { model, workerId, incarnation }: WorkerIdentity,
  { ttlMs, pace, nowMs = Date.now() }: Heartbeat,
): Promise<'alive' | 'buried'> {
  const { base } = store.keysOf(model);
  const measured = pace === undefined ? '' : JSON.stringify(pace);
  const reply = await runScript(store.redis, 'heartbeat-worker', base, workerId, incarnation, ttlMs, nowMs, measured);
  return reply as 'alive' | 'buried';
}

/** No more leases from now on; what it has it keeps, and `drained` comes last in its inbox. False when it is not registered any more. */
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

/** Removes the workers of a model whose heartbeats stopped, and drops the locks of what they had. Safe to run anywhere, any time. */
export async function buryWorkers(
  store: StoreConnection,
  model: string,
): Promise<{ workerId: string; requests: number }[]> {
  const reply = (await runScript(store.redis, 'bury-workers', store.keysOf(model).base)) as (string | number)[];
  const buried: { workerId: string; requests: number }[] = [];
  for (let position = 0; position + 1 < reply.length; position += 2)
    buried.push({ workerId: String(reply[position]), requests: Number(reply[position + 1]) });
  return buried;
}
