import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { createPoller, pause } from './poller.ts';

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

it('polls again some time after each response, until one is false', async () => {
  const answers = [true, true, false];
  const ask = vi.fn<() => Promise<boolean>>(async () => answers.shift()!);
  const poller = createPoller(1000, ask);
  poller.start();
  expect(ask).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(999);
  expect(ask).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(ask).toHaveBeenCalledTimes(3);
});

it('stops polling when stopped, also during a response, and polls immediately when started again', async () => {
  let answer: (goesOn: boolean) => void;
  const ask = vi.fn<() => Promise<boolean>>(() => new Promise((resolve) => (answer = resolve)));
  const poller = createPoller(1000, ask);
  poller.start();
  poller.stop();
  answer!(true);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(ask).toHaveBeenCalledTimes(1);
  poller.start();
  answer!(true);
  await vi.advanceTimersByTimeAsync(500);
  poller.start();
  expect(ask).toHaveBeenCalledTimes(3);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(ask).toHaveBeenCalledTimes(3);
});

it('distinguishes an elapsed pause from an aborted one', async () => {
  const stop = new AbortController();
  const pauses = [pause(1000, stop.signal), pause(3000, stop.signal)];
  await vi.advanceTimersByTimeAsync(1000);
  stop.abort();
  const late = pause(1000, stop.signal);
  await vi.advanceTimersByTimeAsync(0);
  expect(await Promise.all([...pauses, late])).toEqual([true, false, false]);
});
