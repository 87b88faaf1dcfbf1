/** What stands in Redis when nobody asks for anything any more. */
import { setTimeout as delay } from 'node:timers/promises';
import { groupBy, modelOfShard } from '@darkroom/core';
import { readEvents, type StoreConnection, workerLists } from '@darkroom/store';
import { endTypes } from './stories.ts';

export interface AtRest {
  /** Where bytes are kept outside of Redis, when no request needs them any more. */
  files: readonly string[];
  /** Requests whose events, as they stand in Redis, do not have one end, and that last. */
  endless: readonly string[];
  /** That no worker should have any more. */
  leases: readonly string[];
  /** Of each that is alive or known, the lists it is in. */
  workers: readonly { worker: string; lists: readonly string[] }[];
  /** Keys that would stay for ever and should not. */
  withoutEnd: readonly string[];
  keys: number;
  /** What still waits, runs, or is yet to be told. */
  unsettled: readonly string[];
  /** Of keys and values, when all that has a time to live is gone. */
  bytes: { start: number; end: number; changes: readonly string[] };
}

type InRedis = Omit<AtRest, 'bytes' | 'files' | 'endless'>;

/** What may stay without an end: what is known of models and of workers that live, and empty or bounded queues. */
const lasting = [
  /:models$/,
  /\}:(?:asset|arrivals|shares|tally|swept|webhooks|room)$/,
  /\}:workers:\w+$/,
  /\}:(?:worker|inbox):/,
  /:id-secret$/,
  /\}:queue:(?:meta|id|pc|events|marker|metrics:(?:completed|failed)(?::data)?|stalled-check)$/,
  /\{_webhooks\}:secrets$/,
];

/** `workerNames`: those that live, `<model> <id>`. */
async function readAtRest(store: StoreConnection, workerNames: readonly string[]): Promise<InRedis> {
  const models = await store.redis.hkeys(`${store.prefix}:models`);
  const keys = await allKeys(store);
  const ttls = await Promise.all(keys.map((key) => store.redis.pttl(key)));
  const leases = keys.filter((key) => key.includes(':leases:'));
  const found = (await Promise.all(models.map((model) => workersOf(store, model, keys)))).flat();
  // A worker is in one shard of its model.
  const workers = groupBy(found, ({ worker }) => worker).map((each) => ({
    worker: each[0]!.worker,
    lists: each.flatMap(({ lists }) => lists),
  }));
  const missing = workerNames.filter((name) => !workers.some(({ worker }) => worker === name));
  return {
    leases,
    workers: [
      ...workers.map(({ worker, lists }) => ({
        worker,
        lists: workerNames.includes(worker) ? lists : [...lists, 'of no process'],
      })),
      ...missing.map((worker) => ({ worker, lists: [] })),
    ],
    keys: keys.length,
    withoutEnd: keys.filter((key, at) => ttls[at] === -1 && !lasting.some((pattern) => pattern.test(key))),
    unsettled: [
      ...(await Promise.all(models.map((model) => unsettledOf(store, model)))).flat(),
      ...(await untold(store)),
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
  const heard = await redis.zrange(of.heard, '0', '-1');
  const ids = new Set([...lists.flatMap(([, members]) => members), ...known, ...heard]);
  return [...ids].map((id) => ({
    worker: `${modelOfShard(model)} ${id}`,
    lists: [
      ...lists.filter(([, members]) => members.includes(id)).map(([list]) => list),
      ...(known.includes(id) ? [] : ['no facts of it']),
      ...(heard.includes(id) ? [] : ['not heard of']),
    ],
  }));
}

async function unsettledOf({ redis, keysOf }: StoreConnection, model: string): Promise<string[]> {
  const keys = keysOf(model);
  const room = await redis.hgetall(keys.room);
  const sizes = await Promise.all([
    redis.hlen(keys.open).then((size) => ['open', size] as const),
    ...(['deadlines', 'waiting', 'front', 'places'] as const).map(
      async (name) => [name, await redis.zcard(keys[name])] as const,
    ),
    redis.xlen(keys.webhooks).then((size) => ['webhooks', size] as const),
  ]);
  return [
    ...sizes.filter(([, size]) => size > 0).map(([name, size]) => `${model}: ${size} in ${name}`),
    ...(room['free'] === room['capacity'] ? [] : [`${model}: ${room['free']} of ${room['capacity']} slots are free`]),
  ];
}

async function untold(store: StoreConnection): Promise<string[]> {
  const count = await store.deliveries().getJobCountByTypes('wait', 'active', 'delayed', 'failed');
  return count > 0 ? [`${count} webhooks to be delivered`] : [];
}

/** Waits until nothing is left to be done, or so long. */
export async function untilSettled(
  store: StoreConnection,
  workerNames: () => readonly string[],
  patienceMs: number,
): Promise<InRedis> {
  const deadlineMs = Date.now() + patienceMs;
  for (;;) {
    const found = await readAtRest(store, workerNames());
    const isAtRest =
      found.leases.length + found.withoutEnd.length + found.unsettled.length === 0 &&
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

/** Of requests that are still there, those of which the log does not say once, and last, how it ended. */
export async function readEndless(store: StoreConnection): Promise<string[]> {
  const ids = (await allKeys(store)).flatMap((key) => /:events:(?<id>.+)$/.exec(key)?.groups!['id'] ?? []);
  const endless: string[] = [];
  for (const id of ids) {
    const types = (await readEvents(store, id, { after: 0, limit: 10_000 })).map(({ type }) => type);
    const ends = types.filter((type) => endTypes.has(type)).length;
    // The time of one may be over since it was listed.
    if (types.length === 0) continue;
    if (ends !== 1 || !endTypes.has(types.at(-1)!)) endless.push(`${id}: ${types.slice(-3).join(', ')}`);
  }
  return endless;
}

/** Waits until there is none any more, or so long; those that are left. */
export async function untilNone(files: () => readonly string[], patienceMs: number): Promise<readonly string[]> {
  const deadlineMs = Date.now() + patienceMs;
  for (;;) {
    const left = files();
    if (left.length === 0 || Date.now() > deadlineMs) return left;
    await delay(1000);
  }
}

/** What fills up to a bound and stays there, which a run may not have reached at its start: counts, and what BullMQ logs. Bytes, of which
 * only more than that counts. */
const bounded: readonly (readonly [pattern: RegExp, bytes: number])[] = [
  [/\}:tally$/, 32_768],
  [/\}:queue:(?:events|metrics:\w+:data)$/, 262_144],
];

/** Has all that has a time to live go now, and says what each key takes that is left, without connections and buffers. */
export async function bytesAfterTtl(store: StoreConnection): Promise<Map<string, number>> {
  const { redis } = store;
  for (const key of await allKeys(store)) if ((await redis.pttl(key)) >= 0) await redis.del(key);
  const left = await allKeys(store);
  const sizes = await Promise.all(left.map((key) => redis.memory('USAGE', key, 'SAMPLES', '0')));
  const bytes = new Map<string, number>();
  for (const [at, key] of left.entries()) {
    const bound = bounded.find(([pattern]) => pattern.test(key))?.[1] ?? 0;
    // Each life of a worker has another name.
    const name = key.replace(/\.\d+/, '');
    bytes.set(name, (bytes.get(name) ?? 0) + Math.max(0, (sizes[at] ?? 0) - bound));
  }
  return bytes;
}

/** What changed: in all, and of which keys. */
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
