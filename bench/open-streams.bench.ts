/**
 * Cost of ten thousand open event streams, each of its own request, on one API process: memory at rest, event lag,
 * subscriber connections to Redis, and the time to open and close them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { publishModel, type RequestWrite, writeBatch } from '@darkroom/store';
import { dispatchNext, seedRequest, seedWorker } from '@darkroom/testing';
import { it } from 'vitest';
import { card } from '../apps/api/src/testing/test-api.ts';
import { startSystem, stopSystem, type System } from '../test/e2e/system.ts';
import { EventReader } from '../test/systems/event-reader.ts';
import { heapEnvironment, memoryOf } from '../test/systems/heap-of.ts';
import { publish } from './publish.ts';
import { percentileTable, tableOf } from './table.ts';

const streams = Number(process.env['BENCH_STREAMS'] ?? 10_000);
const perSecond = 1000;
/** One key may have 5,000 streams on a process. */
const owners = Array.from({ length: Math.ceil((streams + 1) / 5000) }, (_value, index) => `owner${index}`);
const keyOf = (owner: string): string => `key-of-the-bench-${owner}`;

/** Calls `act` for each item at a rate of `perSecond`. */
async function paced<Item>(items: readonly Item[], act: (item: Item) => unknown): Promise<void> {
  const begunAtMs = performance.now();
  for (const [index, item] of items.entries()) {
    const leftMs = begunAtMs + (1000 * index) / perSecond - performance.now();
    if (leftMs > 1) await delay(leftMs);
    act(item);
  }
}

/** Seeds running requests whose worker emits no events. Returns their deliveries, and the API keys by their ids. */
async function seedRunningOnes({ store }: System) {
  await publishModel(store, card);
  await seedWorker(store, { capacity: streams });
  const options = { queueMaxLength: 1_000_000 };
  const keys = new Map<string, string>();
  for (let sent = 0; sent < streams; sent += 500)
    await Promise.all(
      Array.from({ length: Math.min(500, streams - sent) }, async (_value, index) => {
        const owner = owners[index % owners.length]!;
        keys.set((await seedRequest(store, { owner, options })).id, keyOf(owner));
      }),
    );
  return { deliveries: await dispatchNext(store, streams), keys };
}

it(`${streams} streams`, { timeout: 900_000 }, async () => {
  const api = { name: 'api', environment: heapEnvironment } as const;
  const system = await startSystem({
    parts: [api],
    environment: { API_KEYS: owners.map((owner) => `${owner}:${keyOf(owner)}`).join(',') },
  });
  try {
    const { store, url } = system;
    const part = system.part('api');
    const { deliveries, keys } = await seedRunningOnes(system);
    const follow = (id: string): EventReader => new EventReader(url, id, keys.get(id));
    // The first stream warms up the process.
    const first = follow(deliveries[0]!.id);
    await first.answered;
    const before = await memoryOf(part);
    const rampedAtMs = performance.now();
    const readers = new Map<string, EventReader>();
    await paced(deliveries, ({ id }) => readers.set(id, follow(id)));
    const all = [...readers.values()];
    await Promise.all(all.map(({ answered }) => answered));
    const rampMs = performance.now() - rampedAtMs;
    const atRest = await memoryOf(part);
    const subscribers = String(await store.redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
      .trim()
      .split('\n').length;

    const lagsMs: number[] = [];
    const worker = { shard: card.id, workerId: 'w1', incarnation: 'first' };
    const of = { done: 1, total: 20 };
    let batch = 0;
    const write = (one: RequestWrite): void => void writeBatch(store, worker, [one], { batch: ++batch });
    const sentAtMs = new Map<string, number>();
    await paced(deliveries, (delivery) => {
      sentAtMs.set(delivery.id, performance.now());
      write({ type: 'progress', delivery, progress: { index: 0, ...of }, of });
    });
    // A busy machine answers some requests with 503.
    const open = [...readers].filter(([, { status }]) => status === 200);
    await waitUntil(() => open.every(([, { progressAtMs, error }]) => progressAtMs > 0 || error !== undefined));
    for (const [id, reader] of open) lagsMs.push(reader.progressAtMs - sentAtMs.get(id)!);
    const afterEvents = await memoryOf(part);

    await paced(deliveries, (delivery) => write({ type: 'end', delivery, end: { state: 'canceled' } }));
    await Promise.all(all.map(({ closed }) => closed));
    const each = (what: 'rss' | 'heapUsed' | 'external') => {
      const kilobytes = (memory: NodeJS.MemoryUsage): number => (memory[what] - before[what]) / open.length / 1000;
      return { 'at rest': kilobytes(atRest), 'after an event': kilobytes(afterEvents) };
    };
    const counts = {
      'answered with 200': all.filter(({ status }) => status === 200).length,
      'connections that broke': all.filter(({ error }) => error !== undefined).length,
      'ended with [DONE]': all.filter(({ isDone }) => isDone).length,
      'connections to Redis that listen': subscribers,
      'ramp, s': rampMs / 1000,
    };
    publish({
      name: 'open-streams',
      title: `${streams.toLocaleString('en')} open event streams on one API process`,
      notes: [
        `Each follows its own running request; ${perSecond} connections per second, then one event for each, then the end of each. Memory is measured after a garbage collection; about 37 MB of resident memory come with the first streams.`,
        'The aim is 20 KB each at rest.',
      ],
      tables: [
        tableOf('KB for each stream (less is better)', {
          resident: each('rss'),
          'of that on the heap': each('heapUsed'),
          'of that external': each('external'),
        }),
        percentileTable('Event lag, ms (less is better)', { 'event lag': lagsMs }),
        tableOf('Streams', { [`of ${streams.toLocaleString('en')}`]: counts }, undefined, false),
      ],
    });
  } finally {
    await stopSystem(system);
  }
});

async function waitUntil(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(50);
}
