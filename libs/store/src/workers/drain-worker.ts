/** The end of a worker's leases: because it stops, or because an operator says so, who knows it by its id. */
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { WorkerName } from './call-workers.ts';
import type { WorkerIdentity } from './register-worker.ts';

type Outcome = 'draining' | 'resumed' | 'stopping' | 'removed' | 'unknown';

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

async function run(
  store: StoreConnection,
  { model, workerId }: WorkerName,
  incarnation: string,
  action: 'drain' | 'resume' | 'remove',
): Promise<Outcome> {
  const values = [workerId, incarnation, action];
  return (await runScript(store, 'workers/drain-worker', store.keysOf(model), values)) as Outcome;
}
