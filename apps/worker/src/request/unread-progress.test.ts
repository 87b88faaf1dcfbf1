import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { UnreadProgress } from './unread-progress.ts';

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => void vi.useRealTimers());

function begin() {
  const said: string[] = [];
  const progress = new UnreadProgress(({ progress: { index, done } }) => said.push(`${index}: ${done}`));
  const add = (index: number, done: number, isOfText = false): void =>
    progress.add({ progress: { index, done, total: 9 }, of: { done }, isOfText });
  return { said, progress, add };
}

it('says the newest of each output at the full second, and nothing when there is nothing new', () => {
  const { said, add } = begin();
  vi.advanceTimersByTime(400);
  add(0, 1);
  add(1, 1);
  add(0, 2);
  vi.advanceTimersByTime(599);
  expect(said).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(said).toEqual(['0: 2', '1: 1']);
  vi.advanceTimersByTime(5000);
  add(0, 3);
  expect(said).toHaveLength(2);
});

it('says it before what else is written of its output, and not after that has said it', () => {
  const { said, progress, add } = begin();
  add(0, 1);
  add(1, 1);
  progress.sayOf(1);
  expect(said).toEqual(['1: 1']);
  progress.drop(0);
  progress.sayAll();
  expect(said).toHaveLength(1);
});

it('says each at once while somebody follows, and what there is when that begins', () => {
  const { said, progress, add } = begin();
  add(0, 1);
  progress.follow(3000);
  expect(said).toEqual(['0: 1']);
  add(0, 2);
  vi.advanceTimersByTime(2999);
  add(0, 3);
  expect(said).toEqual(['0: 1', '0: 2', '0: 3']);
  vi.advanceTimersByTime(1);
  add(0, 4);
  expect(said).toHaveLength(3);
});

it('says the last with the output, or at the full second, though somebody follows', () => {
  const { said, progress, add } = begin();
  progress.follow(3000);
  add(0, 9);
  add(1, 9);
  expect(said).toEqual([]);
  progress.sayOf(0);
  expect(said).toEqual(['0: 9']);
  vi.advanceTimersByTime(1000);
  expect(said).toEqual(['0: 9', '1: 9']);
});

it('keeps none of a text, which waits with its text', () => {
  const { said, add } = begin();
  add(0, 1, true);
  expect(said).toEqual(['0: 1']);
});
