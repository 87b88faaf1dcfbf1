import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { Patience } from './patience.ts';

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

it('is ten times as long before the first word, and as long again after each and after each sign', () => {
  const over: number[] = [];
  const patience = new Patience(100, (silentMs) => over.push(silentMs));
  vi.advanceTimersByTime(999);
  patience.heard(false);
  vi.advanceTimersByTime(999);
  patience.heard(true);
  vi.advanceTimersByTime(99);
  patience.heard(false);
  vi.advanceTimersByTime(99);
  patience.heard(true);
  vi.advanceTimersByTime(99);
  expect(over).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(over).toEqual([100]);
});

it('is over once before the first word too, and never after its end', () => {
  const over: number[] = [];
  const patience = new Patience(100, (silentMs) => over.push(silentMs));
  vi.advanceTimersByTime(1000);
  expect(over).toEqual([1000]);
  patience.end();
  const ended = new Patience(100, (silentMs) => over.push(silentMs));
  ended.heard(true);
  ended.end();
  vi.advanceTimersByTime(10_000);
  expect(over).toEqual([1000]);
});
