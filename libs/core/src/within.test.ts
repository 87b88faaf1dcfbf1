import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it, onTestFinished } from 'vitest';
import { within } from './within.ts';

/** Ends when it is given up, and holds nothing of what gives it up but a listener. */
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

it('gives out what it came to, in time', async () => {
  expect(await within(60_000, neverAborted(), () => Promise.resolve(7))).toBe(7);
});

it('gives up what takes too long, across a garbage collection', async () => {
  const collecting = setInterval(collector(), 5);
  onTestFinished(() => clearInterval(collecting));
  const waiting = within(200, neverAborted(), never);
  await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' });
});

it('gives up what is not wanted any more, before it begins too', async () => {
  const controller = new AbortController();
  const waiting = within(60_000, controller.signal, never);
  controller.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
  await expect(within(60_000, controller.signal, never)).rejects.toThrow('stopped');
});

it('keeps nothing of what still listens when it is done, however long the other signal lives', async () => {
  const { signal } = new AbortController();
  const kept: WeakRef<object>[] = [];
  const listen = (both: AbortSignal): Promise<void> => {
    const held = {};
    kept.push(new WeakRef(held));
    both.addEventListener('abort', () => held);
    return Promise.resolve();
  };
  for (let call = 0; call < 20; call++) await within(60_000, signal, listen);
  await setImmediate();
  collector()();
  expect(kept.filter((each) => each.deref() !== undefined)).toEqual([]);
  expect(signal.aborted).toBe(false);
});
