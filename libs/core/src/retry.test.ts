import { expect, it } from 'vitest';
import { BackOff, backOffMs, retry } from './retry.ts';

it('repeats an operation until it succeeds, or fails with an error that no pause follows', async () => {
  const seen: [unknown, number][] = [];
  let calls = 0;
  const fail = (limit: number) => (): Promise<number> =>
    ++calls < limit ? Promise.reject(new Error(`failure ${calls}`)) : Promise.resolve(calls);
  const pauseMs = (error: unknown, failures: number): number | undefined => {
    seen.push([(error as Error).message, failures]);
    return failures < 3 ? 0 : undefined;
  };
  expect(await retry(fail(3), { pauseMs })).toBe(3);
  expect(seen).toEqual([
    ['failure 1', 1],
    ['failure 2', 2],
  ]);
  calls = 0;
  await expect(retry(fail(Infinity), { pauseMs })).rejects.toThrow('failure 3');
});

it('ends a pause when a signal aborts', async () => {
  const stop = new AbortController();
  const signals = [new AbortController().signal, stop.signal];
  const retrying = retry(() => Promise.reject(new Error('no')), { pauseMs: () => 60_000, signals });
  stop.abort();
  await expect(retrying).rejects.toMatchObject({ name: 'AbortError' });
});

it('doubles the pauses up to a maximum', () => {
  expect([1, 2, 3, 4, 100].map((failures) => backOffMs(failures, { firstMs: 10, maxMs: 40 }))).toEqual([
    10, 20, 40, 40, 40,
  ]);
});

it('returns no pause first, doubles up to the maximum, and resets after a long healthy time', () => {
  const backOff = new BackOff({ firstMs: 10, maxMs: 50, resetAfterMs: 100 });
  expect([0, 99, 0, 0, 0, 0].map((wellMs) => backOff.next(wellMs))).toEqual([0, 10, 20, 40, 50, 50]);
  expect([100, 0].map((wellMs) => backOff.next(wellMs))).toEqual([0, 10]);
});
