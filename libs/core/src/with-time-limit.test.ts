import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it, onTestFinished } from 'vitest';
import { withTimeLimit } from './with-time-limit.ts';

/** Rejects when the signal aborts, and holds no reference to it but a listener. */
const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });
const collector = (): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
};
const neverAborted = (): AbortSignal => new AbortController().signal;

it('returns the result within the time limit', async () => {
  expect(await withTimeLimit(60_000, neverAborted(), () => Promise.resolve(7))).toBe(7);
});

it('aborts with a TimeoutError after the time limit, even across garbage collections', async () => {
  const collecting = setInterval(collector(), 5);
  onTestFinished(() => clearInterval(collecting));
  const waiting = withTimeLimit(200, neverAborted(), never);
  await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' });
});

it('aborts with the reason of the signal, also if it is aborted before the start', async () => {
  const controller = new AbortController();
  const waiting = withTimeLimit(60_000, controller.signal, never);
  controller.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
  await expect(withTimeLimit(60_000, controller.signal, never)).rejects.toThrow('stopped');
});

it('releases all abort listeners when it is done, although the outer signal lives on', async () => {
  const { signal } = new AbortController();
  const kept: WeakRef<object>[] = [];
  const listen = (both: AbortSignal): Promise<void> => {
    const held = {};
    kept.push(new WeakRef(held));
    both.addEventListener('abort', () => held);
    return Promise.resolve();
  };
  for (let call = 0; call < 20; call++) await withTimeLimit(60_000, signal, listen);
  await setImmediate();
  collector()();
  expect(kept.filter((each) => each.deref() !== undefined)).toEqual([]);
  expect(signal.aborted).toBe(false);
});
