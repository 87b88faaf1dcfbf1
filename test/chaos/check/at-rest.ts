/** State of Redis and the byte store once the system is idle: leases, workers, keys, pending work and memory. */
import { setTimeout as delay } from 'node:timers/promises';
import { groupBy, modelOfShard } from '@darkroom/core';
import { readEvents, type StoreConnection, workerLists } from '@darkroom/store';
import { endTypes } from './stories.ts';

export interface AtRest {
  /** Files in the byte store after all requests have expired. */
  files: readonly string[];
  /** Requests whose event log in Redis does not have exactly one terminal event, as the last. */
  invalidLogs: readonly string[];
  /** Lease keys; an idle system has none. */
  leases: readonly string[];
  /** Worker lists that each running or registered worker is in. */
  workers: readonly { worker: string; lists: readonly string[] }[];
  /** Keys without a TTL that should have one. */
  keysWithoutTtl: readonly string[];
  keys: number;
  /** Requests and webhooks that are queued, running or undelivered. */
  pending: readonly string[];
  /** Memory of keys and values, without keys that have a TTL. */
  bytes: { start: number; end: number; changes: readonly string[] };
}

type InRedis = Omit<AtRest, 'bytes' | 'files' | 'invalidLogs'>;

/** Keys that may have no TTL: records of models and live workers, and empty or bounded queues. */
const mayLackTtl = [
  /:models$/,
  /\}:(?:asset|arrivals|shares|counters|swept|webhooks|capacity)$/,
  /\}:workers:\w+$/,
  /\}:(?:worker|inbox):/,
  /:id-secret$/,
  /\}:queue:(?:meta|id|pc|events|marker|metrics:(?:completed|failed)(?::data)?|stalled-check)$/,
  /\{_webhooks\}:secrets$/,
];

/** Reads the state of Redis. `workerNames`: running workers, as `<model> <id>`. */
async function readAtRest(store: StoreConnection, workerNames: readonly string[]): Promise<InRedis> {
  const models = await store.redis.hkeys(`${store.prefix}:models`);
  const keys = await allKeys(store);
  const ttls = await Promise.all(keys.map((key) => store.redis.pttl(key)));
  const leases = keys.filter((key) => key.includes(':leases:'));
  const found = (await Promise.all(models.map((model) => workersOf(store, model, keys)))).flat();
  // Merge the shards of a model: a worker is in one of them.
  const workers = groupBy(found, ({ worker }) => worker).map((each) => ({
    worker: each[0].worker,
    lists: each.flatMap(({ lists }) => lists),
  }));
  const missing = workerNames.filter((name) => !workers.some(({ worker }) => worker === name));
  return {
    leases,
    workers: [
      ...workers.map(({ worker, lists }) => ({
        worker,
        lists: workerNames.includes(worker) ? lists : [...lists, 'no such process'],
      })),
      ...missing.map((worker) => ({ worker, lists: [] })),
    ],
    keys: keys.length,
    keysWithoutTtl: keys.filter((key, at) => ttls[at] === -1 && !mayLackTtl.some((pattern) => pattern.test(key))),
    pending: [
      ...(await Promise.all(models.map((model) => pendingOf(store, model)))).flat(),
      ...(await undeliveredWebhooks(store)),
    ],
  };
}

async function workersOf({ redis, keysOf }: StoreConnection, model: string, keys: readonly string[]) {
  const { base, ...of } = keysOf(model);
  const lists = await Promise.all(
    workerLists.map(async (list) => [list, await redis.zrange(of.workers(list), '0', '-1')] as const),
  );
  const known = keys
    .filter((key) => key.startsWith(`${base}:worker:`))
    .map((key) => key.slice(`${base}:worker:`.length));
  const withHeartbeat = await redis.zrange(of.heartbeats, '0', '-1');
  const ids = new Set([...lists.flatMap(([, members]) => members), ...known, ...withHeartbeat]);
  return [...ids].map((id) => ({
    worker: `${modelOfShard(model)} ${id}`,
    lists: [
      ...lists.filter(([, members]) => members.includes(id)).map(([list]) => list),
      ...(known.includes(id) ? [] : ['no worker key']),
      ...(withHeartbeat.includes(id) ? [] : ['no heartbeat']),
    ],
  }));
}

async function pendingOf({ redis, keysOf }: StoreConnection, model: string): Promise<string[]> {
  const keys = keysOf(model);
  const capacity = await redis.hgetall(keys.capacity);
  const sizes = await Promise.all([
    redis.hlen(keys.open).then((size) => ['open', size] as const),
    ...(['deadlines', 'waiting', 'front', 'places'] as const).map(
      async (name) => [name, await redis.zcard(keys[name])] as const,
    ),
    redis.xlen(keys.webhooks).then((size) => ['webhooks', size] as const),
  ]);
  return [
    ...sizes.filter(([, size]) => size > 0).map(([name, size]) => `${model}: ${size} in ${name}`),
    ...(capacity['free'] === capacity['capacity']
      ? []
      : [`${model}: ${capacity['free']} of ${capacity['capacity']} slots are free`]),
  ];
}

async function undeliveredWebhooks(store: StoreConnection): Promise<string[]> {
  const count = await store.deliveries().getJobCountByTypes('wait', 'active', 'delayed', 'failed');
  return count > 0 ? [`${count} webhooks undelivered`] : [];
}

/** Waits until the system is idle, at most `timeoutMs`; returns the last state. */
export async function untilSettled(
  store: StoreConnection,
  workerNames: () => readonly string[],
  timeoutMs: number,
): Promise<InRedis> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    const found = await readAtRest(store, workerNames());
    const isAtRest =
      found.leases.length + found.keysWithoutTtl.length + found.pending.length === 0 &&
      found.workers.every(({ lists }) => lists.length === 1);
    if (isAtRest || Date.now() > deadlineMs) return found;
    await delay(1000);
  }
}

async function allKeys(store: StoreConnection): Promise<string[]> {
  const keys = new Set<string>();
  for (const server of store.masters()) {
    let cursor = '0';
    do {
      const [next, page] = await server.scan(cursor, 'COUNT', 1000);
      cursor = next;
      for (const key of page) keys.add(key);
    } while (cursor !== '0');
  }
  return [...keys];
}

/** Returns stored requests whose event log does not have exactly one terminal event, as the last. */
export async function readInvalidLogs(store: StoreConnection): Promise<string[]> {
  const ids = (await allKeys(store)).flatMap((key) => /:events:(?<id>.+)$/.exec(key)?.groups!['id'] ?? []);
  const invalidLogs: string[] = [];
  for (const id of ids) {
    const types = (await readEvents(store, id, { after: 0, limit: 10_000 })).map(({ type }) => type);
    const ends = types.filter((type) => endTypes.has(type)).length;
    // A request may have expired since its key was listed.
    if (types.length === 0) continue;
    if (ends !== 1 || !endTypes.has(types.at(-1)!)) invalidLogs.push(`${id}: ${types.slice(-3).join(', ')}`);
  }
  return invalidLogs;
}

/** Waits until there are no files, at most `timeoutMs`; returns the remaining files. */
export async function untilEmpty(files: () => readonly string[], timeoutMs: number): Promise<readonly string[]> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    const left = files();
    if (left.length === 0 || Date.now() > deadlineMs) return left;
    await delay(1000);
  }
}

/**
 * Keys that grow to a bound which a run may not have reached at its start: counters and BullMQ's logs. Only bytes
 * above the bound count.
 */
const bounded: readonly (readonly [pattern: RegExp, bytes: number])[] = [
  [/\}:counters$/, 32_768],
  [/\}:queue:(?:events|metrics:\w+:data)$/, 262_144],
];

/** Deletes all keys that have a TTL; returns the bytes of each remaining key, without connections and buffers. */
export async function bytesAfterTtl(store: StoreConnection): Promise<Map<string, number>> {
  const { redis } = store;
  for (const key of await allKeys(store)) if ((await redis.pttl(key)) >= 0) await redis.del(key);
  const left = await allKeys(store);
  const sizes = await Promise.all(left.map((key) => redis.memory('USAGE', key, 'SAMPLES', '0')));
  const bytes = new Map<string, number>();
  for (const [at, key] of left.entries()) {
    const bound = bounded.find(([pattern]) => pattern.test(key))?.[1] ?? 0;
    // Worker ids end with a generation (`.1`), which differs after each restart.
    const name = key.replace(/\.\d+/, '');
    bytes.set(name, (bytes.get(name) ?? 0) + Math.max(0, (sizes[at] ?? 0) - bound));
  }
  return bytes;
}

/** Compares sizes by key: the totals, and the changed keys, largest change first. */
export function growthOf(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): AtRest['bytes'] {
  const changes = [...new Set([...before.keys(), ...after.keys()])]
    .map((key) => ({ key, more: (after.get(key) ?? 0) - (before.get(key) ?? 0) }))
    .filter(({ more }) => more !== 0)
    .toSorted((left, right) => Math.abs(right.more) - Math.abs(left.more));
  return { start: totalOf(before), end: totalOf(after), changes: changes.map(({ key, more }) => `${key} ${more}`) };
}

function totalOf(sizes: ReadonlyMap<string, number>): number {
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}
