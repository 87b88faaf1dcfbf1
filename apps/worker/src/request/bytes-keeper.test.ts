import { type ByteStore, bytesUnavailable, openBytes, type StoreConnection } from '@darkroom/store';
import { silentLogger } from '@darkroom/testing';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BytesKeeper } from './bytes-keeper.ts';

const delivery = { id: 'tiny-1', token: 't' };
const data = Buffer.from('an image');
const reference = { name: 'p/tiny-1/outputs/t.0', from: 0, to: data.length };

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => vi.useRealTimers());

/** A keeper on a blob store whose `put` the test defines. */
function open(put: ByteStore['put']) {
  const bytes = { ...openBytes({ kind: 'directory', path: '/nowhere' }), put };
  const connection = { bytes, prefix: 'p' } as unknown as StoreConnection;
  const keeper = new BytesKeeper({ store: connection, log: silentLogger() });
  const leaving = new AbortController();
  const output = { index: 0, data, contentType: 'image/png', signal: leaving.signal };
  const store = (untilMs = Infinity) => keeper.storeOutput(delivery, { ...output, untilMs });
  const storeWork = (name: string) => keeper.storeWork(delivery, { kind: 'preview', name, data });
  return { keeper, leaving, store, storeWork };
}

/** A `put` that the test settles. */
function createPendingPut() {
  let settle: (() => void) | undefined;
  const put = (): Promise<void> => new Promise((resolve) => (settle = resolve));
  return { put, finish: () => settle?.() };
}

const hang = (): Promise<void> => new Promise(() => {});
const fail = (): Promise<void> => Promise.reject(bytesUnavailable('put', new Error('away')));

it('retries until the output is stored, and reports meanwhile that the store is unavailable', async () => {
  const put = vi.fn<ByteStore['put']>().mockImplementation(fail);
  const { keeper, store } = open(put);
  const stored = store();
  await vi.advanceTimersByTimeAsync(2000);
  expect(keeper.isUnavailable).toBe(true);
  put.mockResolvedValue();
  await vi.advanceTimersByTimeAsync(1000);
  expect(await stored).toEqual(reference);
  expect(keeper.isUnavailable).toBe(false);
});

it('treats a store that does not answer as unavailable', async () => {
  const { keeper, storeWork } = open(hang);
  const stored = storeWork('0.1');
  await vi.advanceTimersByTimeAsync(2100);
  expect(await stored).toBeUndefined();
  expect(keeper.isUnavailable).toBe(true);
});

it("stops waiting for an output at its request's deadline", async () => {
  const { store } = open(hang);
  const refused = store(performance.now() + 3000).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(3100);
  expect(await refused).toMatchObject({ name: 'TimeoutError' });
});

it('drops an output at once when it is no longer wanted', async () => {
  const { leaving, store } = open(hang);
  const stored = store();
  leaving.abort();
  expect(await stored).toBeUndefined();
});

it('finishes the write in progress on a stop, but starts no retry', async () => {
  const { put, finish } = createPendingPut();
  const { keeper, store } = open(put);
  const stored = store();
  keeper.stop();
  finish();
  expect(await stored).toEqual(reference);
  const other = open(fail);
  const waiting = other.store();
  await vi.advanceTimersByTimeAsync(100);
  other.keeper.stop();
  expect(await waiting).toBeUndefined();
});

it('stores one preview at a time and skips the others', async () => {
  const { put, finish } = createPendingPut();
  const { storeWork } = open(put);
  const first = storeWork('0.1');
  expect(await storeWork('0.2')).toBeUndefined();
  finish();
  expect(await first).toBeDefined();
});
