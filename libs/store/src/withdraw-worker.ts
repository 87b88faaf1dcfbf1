/** A worker in the hands of an operator, who knows it by its id. */
import type { WorkerIdentity } from './register-worker.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

type WorkerName = Pick<WorkerIdentity, 'model' | 'workerId'>;

/** No more leases from now on: it finishes what it has, and stays. Safe to call twice. False when there is none of this id. */
export async function withdrawWorker(
  store: StoreConnection,
  { model, workerId }: WorkerName,
  nowMs: number = Date.now(),
): Promise<boolean> {
  return (await runScript(store.redis, 'drain-worker', store.keysOf(model).base, workerId, '', nowMs)) === 1;
}

/** `stopping`: it takes no leases because it stops. */
export type ResumeWorkerResult = 'resumed' | 'stopping' | 'unknown';

/** It takes leases again, as soon as it has loaded. Safe to call twice. */
export async function resumeWorker(
  store: StoreConnection,
  { model, workerId }: WorkerName,
  nowMs: number = Date.now(),
): Promise<ResumeWorkerResult> {
  const { base } = store.keysOf(model);
  return (await runScript(store.redis, 'resume-worker', base, workerId, nowMs)) as ResumeWorkerResult;
}
