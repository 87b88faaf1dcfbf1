/** A thousand event streams on one API process; bench/open-streams.bench.ts measures ten times as many. */
import { type Delivery, publishModel, type RequestWrite, writeBatch } from '@darkroom/store';
import { dispatchNext, seedRequest, seedWorker } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { openSystem } from '../e2e/system.ts';
import { EventReader } from './event-reader.ts';
import { heapEnvironment, memoryOf } from './heap-of.ts';

const streams = 1000;
/** Maximum heap growth per stream, bytes; kernel socket buffers are not counted. */
const maxBytes = 15e3;

it('serves 1,000 event streams over one subscriber connection, with at most 15 KB of heap each', async () => {
  const system = await openSystem({ parts: [{ name: 'api', environment: heapEnvironment }] });
  const { store, url } = system;
  const api = system.part('api');
  await publishModel(store, card);
  const worker = await seedWorker(store, { capacity: 2 * streams });
  const options = { queueMaxLength: 1_000_000 };
  await Promise.all(Array.from({ length: 2 * streams }, () => seedRequest(store, { options })));
  const deliveries = await dispatchNext(store, 2 * streams);
  let batch = 0;
  const write = (writes: RequestWrite[]) => writeBatch(store, worker, writes, { batch: ++batch });
  const end = (ended: readonly Delivery[]) =>
    write(ended.map((delivery) => ({ type: 'end', delivery, end: { state: 'canceled' } })));
  const open = async (followed: readonly Delivery[]): Promise<EventReader[]> => {
    const readers = followed.map(({ id }) => new EventReader(url, id));
    await Promise.all(readers.map(({ answered }) => answered));
    return readers;
  };
  // A first round warms up caches, so that the second measures only open streams.
  const first = await open(deliveries.slice(streams));
  await end(deliveries.slice(streams));
  await Promise.all(first.map(({ closed }) => closed));

  const before = await memoryOf(api);
  const measured = deliveries.slice(0, streams);
  const readers = await open(measured);
  const growth = (await memoryOf(api)).heapUsed - before.heapUsed;
  expect(growth / streams).toBeLessThan(maxBytes);
  const subscribers = await store.redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub');
  const channels = String(subscribers)
    .match(/ sub=\d+ /g)!
    .filter((found) => found === ` sub=${streams} `);
  expect(channels).toHaveLength(1);
  await end(measured);
  await Promise.all(readers.map(({ closed }) => closed));
  const results = readers.map(({ status, isDone, error }) => ({ status, isDone, error }));
  expect(results).toEqual(readers.map(() => ({ status: 200, isDone: true, error: undefined })));
});
