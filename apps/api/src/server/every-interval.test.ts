import { expect, it, onTestFinished, vi } from 'vitest';
import { everyInterval } from './every-interval.ts';

it('does not tick at once when the interval is longer than a timer can be', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const tick = vi.fn<() => void>();
  const stop = everyInterval(2_592_000_000, tick);
  vi.advanceTimersByTime(600_000);
  expect(tick).not.toHaveBeenCalled();
  stop();
  expect(vi.getTimerCount()).toBe(0);
});
