/** The end of a worker's leases: because it stops, or because an operator says so, who knows it by its id. */
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { WorkerIdentity } from './register-worker.ts';

type Outcome = 'draining' | 'resumed' | 'stopping' | 'removed' | 'asked' | 'unknown';
/** What an operator may ask of a worker. */
export type WorkerCommand = 'sleep' | 'wake' | 'reload';
type WorkerName = Pick<WorkerIdentity, 'model' | 'workerId'>;

/** No more leases for a worker that stops; what it has it keeps, and `drained` comes last in its inbox. False when it is not registered any more. */
export async function drainWorker(store: StoreConnection, identity: WorkerIdentity): Promise<boolean> {
  return (await run(store, identity, identity.incarnation, 'drain')) === 'draining';
}

/** The end of a worker that stops by itself. Anything it still had goes back to the queue. */
export async function unregisterWorker(store: StoreConnection, identity: WorkerIdentity): Promise<void> {
  await run(store, identity, identity.incarnation, 'remove');
}

/** An operator's: no more leases from now on. It finishes what it has, and stays. Safe to call twice. False when there is none of this id. */
export async function withdrawWorker(store: StoreConnection, worker: WorkerName): Promise<boolean> {
  return (await run(store, worker, '', 'drain')) === 'draining';
}

/** `stopping`: it takes no leases because it stops. */
export type ResumeWorkerResult = 'resumed' | 'stopping' | 'unknown';

/** It takes leases again, as soon as it has loaded. Safe to call twice. */
export async function resumeWorker(store: StoreConnection, worker: WorkerName): Promise<ResumeWorkerResult> {
  return (await run(store, worker, '', 'resume')) as ResumeWorkerResult;
}

/**
 * An operator's: it is to finish what it has and sleep, to load its model now, or to finish what it has and load its model anew. False when
 * there is none of this id.
 */
export async function askWorker(store: StoreConnection, worker: WorkerName, to: WorkerCommand): Promise<boolean> {
  return (await run(store, worker, '', to)) === 'asked';
}

/** The same to all workers of a model. @returns their ids. Two round trips, however many there are. */
export async function askWorkers(store: StoreConnection, model: string, to: WorkerCommand): Promise<string[]> {
  const ids = await store.redis.zrange(store.keysOf(model).heard, '0', '-1');
  const areThere = await Promise.all(ids.map((workerId) => askWorker(store, { model, workerId }, to)));
  return ids.filter((_id, at) => areThere[at]).toSorted();
}

async function run(
  store: StoreConnection,
  { model, workerId }: WorkerName,
  incarnation: string,
  action: 'drain' | 'resume' | 'remove' | WorkerCommand,
): Promise<Outcome> {
  const values = [workerId, incarnation, action];
  return (await runScript(store, 'workers/drain-worker', store.keysOf(model), values)) as Outcome;
}
