import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { SilenceTimer } from './silence-timer.ts';

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

it('waits ten times the timeout for the first output event, and restarts on each event or liveness signal', () => {
  const timeouts: number[] = [];
  const silenceTimer = new SilenceTimer(100, (silentMs) => timeouts.push(silentMs));
  vi.advanceTimersByTime(999);
  silenceTimer.restart(false);
  vi.advanceTimersByTime(999);
  silenceTimer.restart(true);
  vi.advanceTimersByTime(99);
  silenceTimer.restart(false);
  vi.advanceTimersByTime(99);
  silenceTimer.restart(true);
  vi.advanceTimersByTime(99);
  expect(timeouts).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(timeouts).toEqual([100]);
});

it('expires once if no output event arrives, and never after end()', () => {
  const timeouts: number[] = [];
  const silenceTimer = new SilenceTimer(100, (silentMs) => timeouts.push(silentMs));
  vi.advanceTimersByTime(1000);
  expect(timeouts).toEqual([1000]);
  silenceTimer.end();
  const ended = new SilenceTimer(100, (silentMs) => timeouts.push(silentMs));
  ended.restart(true);
  ended.end();
  vi.advanceTimersByTime(10_000);
  expect(timeouts).toEqual([1000]);
});
