import { expect, it } from 'vitest';
import { WakeSignal } from './wake-signal.ts';

it('wakes all who wait, and remembers a wake-up that nobody waits for once', async () => {
  const signal = new WakeSignal();
  const waits = [signal.wait(), signal.wait()];
  signal.wake();
  expect(await Promise.all(waits)).toEqual([true, true]);
  signal.wake();
  signal.wake();
  expect(await signal.wait()).toBe(true);
  expect(await signal.wait({ timeoutMs: 1 })).toBe(false);
  signal.wake();
  signal.reset();
  expect(await signal.wait({ timeoutMs: 1 })).toBe(false);
});

it('ends a wait when the signal aborts', async () => {
  const stop = new AbortController();
  const wait = new WakeSignal().wait({ signal: stop.signal });
  stop.abort();
  expect(await wait).toBe(false);
  expect(await new WakeSignal().wait({ signal: stop.signal })).toBe(false);
});
