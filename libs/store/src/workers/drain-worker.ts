/** Ends the leases of a worker: because it stops, or because an operator drains it by its id. */
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { WorkerIdentity, WorkerName } from './register-worker.ts';

/**
 * Stops leases for a worker that shuts down; it finishes those it has, and `drained` is the last message in its inbox.
 * Returns false if it is not registered any more.
 */
export function drainWorker(store: StoreConnection, identity: WorkerIdentity): Promise<boolean> {
  return drain(store, identity, identity.incarnation);
}

/** Deletes a worker that has stopped. Requests it still has are requeued. */
export async function unregisterWorker(
  store: StoreConnection,
  { shard, workerId, incarnation }: WorkerIdentity,
): Promise<void> {
  await runScript(store, 'workers/unregister-worker', store.keysOf(shard), [workerId, incarnation]);
}

/**
 * Drains a worker for an operator: it finishes its leases, gets no more, and stays registered. Safe to call twice.
 * Returns false if there is no such worker.
 */
export function drainByOperator(store: StoreConnection, worker: WorkerName): Promise<boolean> {
  return drain(store, worker, '');
}

/** `stopping`: it gets no leases because it shuts down. */
export type ResumeWorkerResult = 'resumed' | 'stopping' | 'unknown';

/** Lets a drained worker take leases again, once it has loaded its model. Safe to call twice. */
export async function resumeWorker(
  store: StoreConnection,
  { shard, workerId }: WorkerName,
): Promise<ResumeWorkerResult> {
  const reply = await runScript(store, 'workers/resume-worker', store.keysOf(shard), [workerId]);
  return reply as ResumeWorkerResult;
}

async function drain(store: StoreConnection, worker: WorkerName, incarnation: string): Promise<boolean> {
  const values = [worker.workerId, incarnation];
  return (await runScript(store, 'workers/drain-worker', store.keysOf(worker.shard), values)) === 'draining';
}
