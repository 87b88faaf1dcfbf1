import { type ByteStore, bytesUnavailable, openBytes, type StoreConnection } from '@darkroom/store';
import { silentLogger } from '@darkroom/testing';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BytesKeeper } from './bytes-keeper.ts';

const delivery = { id: 'tiny-1', token: 't' };
const data = Buffer.from('a picture');
const reference = { name: 'p/tiny-1/outputs/t.0', from: 0, to: data.length };

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => vi.useRealTimers());

/** A keeper before a place that does as it is told. */
function open(put: ByteStore['put']) {
  const bytes = { ...openBytes({ kind: 'directory', path: '/nowhere' }), put };
  const store = { bytes, prefix: 'p' } as unknown as StoreConnection;
  const keeper = new BytesKeeper({ store, log: silentLogger() });
  const leaving = new AbortController();
  const output = { index: 0, data, contentType: 'image/png', signal: leaving.signal };
  const keep = (untilMs = Infinity) => keeper.keepOutput(delivery, { ...output, untilMs });
  const keepWork = (name: string) => keeper.keepWork(delivery, { kind: 'preview', name, data });
  return { keeper, leaving, keep, keepWork };
}

/** A promise that a test settles. */
function held() {
  let settle: (() => void) | undefined;
  const put = (): Promise<void> => new Promise((resolve) => (settle = resolve));
  return { put, finish: () => settle?.() };
}

const hang = (): Promise<void> => new Promise(() => {});
const fail = (): Promise<void> => Promise.reject(bytesUnavailable('put', new Error('away')));

it('tries again until it is kept, and says meanwhile that outputs wait', async () => {
  const put = vi.fn<ByteStore['put']>().mockImplementation(fail);
  const { keeper, keep } = open(put);
  const kept = keep();
  await vi.advanceTimersByTimeAsync(2000);
  expect(keeper.isAway).toBe(true);
  put.mockResolvedValue();
  await vi.advanceTimersByTimeAsync(1000);
  expect(await kept).toEqual(reference);
  expect(keeper.isAway).toBe(false);
});

it('takes what says nothing for away', async () => {
  const { keeper, keepWork } = open(hang);
  const kept = keepWork('0.1');
  await vi.advanceTimersByTimeAsync(2100);
  expect(await kept).toBeUndefined();
  expect(keeper.isAway).toBe(true);
});

it('waits no longer for an output than its request may take', async () => {
  const { keep } = open(hang);
  const refused = keep(performance.now() + 3000).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(3100);
  expect(await refused).toMatchObject({ name: 'TimeoutError' });
});

it('lets go at once of what nobody wants from here any more', async () => {
  const { leaving, keep } = open(hang);
  const kept = keep();
  leaving.abort();
  expect(await kept).toBeUndefined();
});

it('waits no more when it stops, but ends what is under way', async () => {
  const { put, finish } = held();
  const { keeper, keep } = open(put);
  const kept = keep();
  keeper.stop();
  finish();
  expect(await kept).toEqual(reference);
  const other = open(fail);
  const waiting = other.keep();
  await vi.advanceTimersByTimeAsync(100);
  other.keeper.stop();
  expect(await waiting).toBeUndefined();
});

it('keeps one preview at a time, and leaves the others out', async () => {
  const { put, finish } = held();
  const { keepWork } = open(put);
  const first = keepWork('0.1');
  expect(await keepWork('0.2')).toBeUndefined();
  finish();
  expect(await first).toBeDefined();
});
