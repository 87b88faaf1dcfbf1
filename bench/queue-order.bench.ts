/**
 * What the fair order costs Redis: submitting and dispatching with long lines, beside the same with an empty queue. Times of
 * single scripts are too short to trust on a shared machine, so the cases take turns and the ratio is what counts.
 */
import { performance } from 'node:perf_hooks';
import {
  admitRequest,
  cancelRequest,
  connectStore,
  type Delivery,
  readRequest,
  registerWorker,
  type StoreConnection,
  writeBatch,
} from '@darkroom/store';
import { dispatchNext, testEnvelope } from '@darkroom/testing';
import { inject, it } from 'vitest';
import { median, report } from './report.ts';

const admission = { queueMaxLength: 1_000_000, unserved: 'accept' } as const;
const rounds = 200;

const worker = { model: 'tiny', workerId: 'w1', incarnation: 'bench' };

interface Line {
  name: string;
  store: StoreConnection;
  owner: string;
  waiting: number;
}

async function openLine(name: string, waiting: number, owners: number): Promise<Line> {
  const store = connectStore({ url: inject('redisUrl'), prefix: `bench-${name.replaceAll(/\W/g, '-')}` });
  for (let sent = 0; sent < waiting; sent += 500)
    await Promise.all(
      Array.from({ length: Math.min(500, waiting - sent) }, (_value, index) =>
        admitRequest(store, testEnvelope({ owner: `owner-${index % owners}` }), admission),
      ),
    );
  await registerWorker(store, worker, { state: 'ready', capacity: 8, info: {} });
  return { name, store, owner: 'owner-0', waiting };
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return (performance.now() - startedAt) * 1000;
}

it('submits, polls, cancels and dispatches with long lines', { timeout: 600_000 }, async () => {
  const lines = [
    await openLine('empty', 0, 1),
    await openLine('1000 of one owner', 1000, 1),
    await openLine('10000 of one owner', 10_000, 1),
    await openLine('10000 of 100 owners', 10_000, 100),
  ];
  const times = new Map<string, number[]>();
  const note = (line: Line, what: string, us: number): void => {
    const name = `${what}, ${line.name}`;
    times.set(name, [...(times.get(name) ?? []), us]);
  };
  for (let round = 0; round < rounds; round++)
    for (const line of lines) {
      const { store, owner } = line;
      const last = testEnvelope({ owner });
      note(line, 'submit at the end', await timed(() => admitRequest(store, last, admission)));
      note(line, 'poll', await timed(() => readRequest(store, last.id)));
      const urgent = testEnvelope({ owner, priority: 1 });
      note(line, 'submit before all of the owner', await timed(() => admitRequest(store, urgent, admission)));
      note(line, 'cancel at the front of its owner', await timed(() => cancelRequest(store, urgent.id)));
      let leased: Delivery[] = [];
      note(line, 'look, and dispatch two', await timed(async () => (leased = await dispatchNext(store, 2))));
      const ends = leased.map((delivery) => ({ type: 'end', delivery, end: { state: 'canceled' } }) as const);
      await writeBatch(store, worker, ends, { batch: round + 1 });
    }
  const names = [...times.keys()].toSorted();
  report('µs, median', Object.fromEntries(names.map((name) => [name, median(times.get(name)!)])));
  for (const { store } of lines) {
    const keys = await store.redis.keys(`${store.prefix}:*`);
    await store.redis.unlink(...keys);
    await store.close();
  }
});
