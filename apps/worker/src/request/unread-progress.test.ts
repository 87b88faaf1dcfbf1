import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FlushTimer, UnreadProgress } from './unread-progress.ts';

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => void vi.useRealTimers());

function begin(timer = new FlushTimer()) {
  const written: string[] = [];
  const write: ConstructorParameters<typeof UnreadProgress>[0] = ({ progress: { index, done } }) =>
    written.push(`${index}: ${done}`);
  const progress = new UnreadProgress(write, timer);
  const add = (index: number, done: number, isOfText = false): void =>
    progress.add({ progress: { index, done, total: 9 }, of: { done }, isOfText });
  return { written, progress, add };
}

it('writes the latest progress of each output every full second, and nothing without news', () => {
  const { written, add } = begin();
  vi.advanceTimersByTime(400);
  add(0, 1);
  add(1, 1);
  add(0, 2);
  vi.advanceTimersByTime(599);
  expect(written).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(written).toEqual(['0: 2', '1: 1']);
  vi.advanceTimersByTime(5000);
  add(0, 3);
  expect(written).toHaveLength(2);
});

it("flushes an output's progress before other writes of it, and skips progress that another write contains", () => {
  const { written, progress, add } = begin();
  add(0, 1);
  add(1, 1);
  progress.flushOutput(1);
  expect(written).toEqual(['1: 1']);
  progress.drop(0);
  progress.flushAll();
  expect(written).toHaveLength(1);
});

it('writes all progress at once while a reader follows, and the pending progress when it starts', () => {
  const { written, progress, add } = begin();
  add(0, 1);
  progress.follow(3000);
  expect(written).toEqual(['0: 1']);
  add(0, 2);
  vi.advanceTimersByTime(2999);
  add(0, 3);
  expect(written).toEqual(['0: 1', '0: 2', '0: 3']);
  vi.advanceTimersByTime(1);
  add(0, 4);
  expect(written).toHaveLength(3);
});

it('writes the last progress with the output or at the full second, even while a reader follows', () => {
  const { written, progress, add } = begin();
  progress.follow(3000);
  add(0, 9);
  add(1, 9);
  expect(written).toEqual([]);
  progress.flushOutput(0);
  expect(written).toEqual(['0: 9']);
  vi.advanceTimersByTime(1000);
  expect(written).toEqual(['0: 9', '1: 9']);
});

it('passes on the progress of a text, which waits with its text', () => {
  const { written, add } = begin();
  add(0, 1, true);
  expect(written).toEqual(['0: 1']);
});

it('writes the progress of all requests of a worker in one timer callback, whenever it was reported', () => {
  const timer = new FlushTimer();
  const [first, second] = [begin(timer), begin(timer)];
  vi.advanceTimersByTime(400);
  first.add(0, 1);
  vi.advanceTimersByTime(1);
  second.add(0, 2);
  vi.advanceTimersToNextTimer();
  expect([first.written, second.written]).toEqual([['0: 1'], ['0: 2']]);
  expect(vi.getTimerCount()).toBe(0);
});
