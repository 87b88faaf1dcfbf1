/**
 * Operators' calls: a message in the inbox of a worker, and its answer in a hash that is gone soon. Whoever calls looks for the answers
 * as long as it likes, so that a worker that is frozen holds nobody.
 */
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { listShards, shardsOf } from './model-registry.ts';
import type { WorkerIdentity } from './register-worker.ts';

/** What an operator may ask of a worker. */
export type WorkerCommand = 'sleep' | 'wake' | 'reload' | 'check_health' | 'memory';
/** `model`: or the shard of it that the worker is in. */
export type WorkerName = Pick<WorkerIdentity, 'model' | 'workerId'>;

/** How long answers are kept after the last, ms. */
const keptMs = 60_000;

/**
 * Workers by their id, of whatever model; or, where none has it, those whose ids begin with it and a dash: all that one start of the
 * program runs. Two round trips.
 */
export async function findWorkers(store: StoreConnection, id: string): Promise<WorkerName[]> {
  const lists = await Promise.all((await listShards(store)).map((shard) => listInShard(store, shard)));
  const all = lists.flat();
  const exact = all.filter(({ workerId }) => workerId === id);
  return exact.length > 0 ? exact : all.filter(({ workerId }) => workerId.startsWith(`${id}-`));
}

/** All workers of a model, by id, each with the shard it is in. Two round trips. */
export async function listWorkers(store: StoreConnection, model: string): Promise<WorkerName[]> {
  const lists = await Promise.all((await shardsOf(store, model)).map((shard) => listInShard(store, shard)));
  return lists.flat().toSorted((left, right) => (left.workerId < right.workerId ? -1 : 1));
}

async function listInShard(store: StoreConnection, model: string): Promise<WorkerName[]> {
  const ids = await store.redis.zrange(store.keysOf(model).heard, '0', '-1');
  return ids.toSorted().map((workerId) => ({ model, workerId }));
}

/** Tells a worker; `call`: it is to answer under that name. False when there is none of this id. */
export async function askWorker(
  store: StoreConnection,
  { model, workerId }: WorkerName,
  type: WorkerCommand,
  { call }: { call?: string } = {},
): Promise<boolean> {
  const values = [workerId, '', 'ask', JSON.stringify({ type, call })];
  return (await runScript(store, 'workers/drain-worker', store.keysOf(model), values)) === 'asked';
}

/** A worker's answer to a call. */
export async function answerCall(
  store: StoreConnection,
  { model, workerId }: WorkerName,
  { call, answer }: { call: string; answer: object },
): Promise<void> {
  const key = store.keysOf(model).answers(call);
  await store.redis.multi().hset(key, workerId, JSON.stringify(answer)).pexpire(key, keptMs).exec();
}

/** The answers that there are by now, in the order of the workers. One round trip for each model. */
export async function readAnswers(
  store: StoreConnection,
  workers: readonly WorkerName[],
  call: string,
): Promise<(object | undefined)[]> {
  const models = [...new Set(workers.map(({ model }) => model))];
  const answers = await Promise.all(
    models.map(async (model) => [model, await store.redis.hgetall(store.keysOf(model).answers(call))] as const),
  );
  const byModel = new Map(answers);
  return workers.map(({ model, workerId }) => {
    const answer = byModel.get(model)?.[workerId];
    return answer === undefined ? undefined : (JSON.parse(answer) as object);
  });
}
