/**
 * Operator commands: a message in the inbox of a worker, and its reply in a short-lived hash. The caller polls for
 * replies as long as it wants, so a frozen worker blocks nothing.
 */
import type { StoreConnection } from '../connection/store-connection.ts';
import { listShards, shardsOf } from '../models/model-registry.ts';
import type { WorkerName } from './register-worker.ts';

/** TTL of replies after the last one, ms. */
const keptMs = 60_000;

/**
 * Finds workers of any model by id; if there is none, those whose id begins with `<id>-`, which are all workers of one
 * worker process. Two round trips.
 */
export async function findWorkers(store: StoreConnection, id: string): Promise<WorkerName[]> {
  const lists = await Promise.all((await listShards(store)).map((shard) => listInShard(store, shard)));
  const all = lists.flat();
  const exact = all.filter(({ workerId }) => workerId === id);
  return exact.length > 0 ? exact : all.filter(({ workerId }) => workerId.startsWith(`${id}-`));
}

/** Returns all workers of a model by id, each with its shard. Two round trips. */
export async function listWorkers(store: StoreConnection, model: string): Promise<WorkerName[]> {
  const lists = await Promise.all((await shardsOf(store, model)).map((shard) => listInShard(store, shard)));
  return lists.flat().toSorted((left, right) => (left.workerId < right.workerId ? -1 : 1));
}

async function listInShard(store: StoreConnection, shard: string): Promise<WorkerName[]> {
  const ids = await store.redis.zrange(store.keysOf(shard).heartbeats, '0', '-1');
  return ids.toSorted().map((workerId) => ({ shard, workerId }));
}

/** Stores a worker's reply to a command. */
export async function answerCall(
  store: StoreConnection,
  { shard, workerId }: WorkerName,
  { call, answer }: { call: string; answer: object },
): Promise<void> {
  const key = store.keysOf(shard).answers(call);
  await store.redis.multi().hset(key, workerId, JSON.stringify(answer)).pexpire(key, keptMs).exec();
}

/** Returns the replies so far, in the order of the workers. One round trip. */
export async function readAnswers(
  store: StoreConnection,
  workers: readonly WorkerName[],
  call: string,
): Promise<(object | undefined)[]> {
  const shards = [...new Set(workers.map(({ shard }) => shard))];
  const answers = await Promise.all(
    shards.map(async (shard) => [shard, await store.redis.hgetall(store.keysOf(shard).answers(call))] as const),
  );
  const byShard = new Map(answers);
  return workers.map(({ shard, workerId }) => {
    const answer = byShard.get(shard)?.[workerId];
    return answer === undefined ? undefined : (JSON.parse(answer) as object);
  });
}
