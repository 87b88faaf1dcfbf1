/**
 * What ten thousand open event streams take of one API process, each of a request of its own: memory at rest, how late events
 * come, how many connections to Redis listen, and how they come and go.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Delivery, publishModel, type RequestWrite, writeBatch } from '@darkroom/store';
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

/** Calls `act` for each, so many a second, and not before its time. */
async function paced<Item>(items: readonly Item[], act: (item: Item) => unknown): Promise<void> {
  const begunAtMs = performance.now();
  for (const [index, item] of items.entries()) {
    const leftMs = begunAtMs + (1000 * index) / perSecond - performance.now();
    if (leftMs > 1) await delay(leftMs);
    act(item);
  }
}

/** Requests that a worker has, of which it says nothing. */
async function seedRunningOnes({ store }: System): Promise<readonly Delivery[]> {
  await publishModel(store, card);
  await seedWorker(store, { capacity: streams });
  const options = { queueMaxLength: 1_000_000 };
  for (let sent = 0; sent < streams; sent += 500)
    await Promise.all(Array.from({ length: Math.min(500, streams - sent) }, () => seedRequest(store, { options })));
  return dispatchNext(store, streams);
}

it(`${streams} streams`, { timeout: 900_000 }, async () => {
  const api = { name: 'api', environment: heapEnvironment } as const;
  const system = await startSystem({
    parts: [api],
    environment: { EVENT_STREAMS_MAX: '100000' },
  });
  try {
    const { store, url } = system;
    const part = system.part('api');
    const deliveries = await seedRunningOnes(system);
    // The first streams warm it up.
    const first = new EventReader(url, deliveries[0]!.id);
    await first.answered;
    const before = await memoryOf(part);
    const rampedAtMs = performance.now();
    const readers = new Map<string, EventReader>();
    await paced(deliveries, ({ id }) => readers.set(id, new EventReader(url, id)));
    const all = [...readers.values()];
    await Promise.all(all.map(({ answered }) => answered));
    const rampMs = performance.now() - rampedAtMs;
    const atRest = await memoryOf(part);
    const subscribers = String(await store.redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
      .trim()
      .split('\n').length;

    const lagsMs: number[] = [];
    const worker = { model: card.id, workerId: 'w1', incarnation: 'first' };
    const of = { done: 1, total: 20 };
    let batch = 0;
    const write = (one: RequestWrite): void => void writeBatch(store, worker, [one], { batch: ++batch });
    const sentAtMs = new Map<string, number>();
    await paced(deliveries, (delivery) => {
      sentAtMs.set(delivery.id, performance.now());
      write({ type: 'progress', delivery, progress: { index: 0, ...of }, of });
    });
    // A machine that is busy with other things answers some with 503.
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
        `Each follows a running request of its own; ${perSecond} connections a second, then an event for each, then the end of each. Memory is measured behind a garbage collection; some 37 MB of the resident memory come with the first streams.`,
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
