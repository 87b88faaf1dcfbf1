import type { ExecutorEvent } from '@darkroom/executor';
import { expect, it } from 'vitest';
import { EngineWatch } from './engine-watch.ts';

const step: ExecutorEvent = { type: 'progress', requestId: 'a', index: 0, step: 1, totalSteps: 9 };

/** Looks once a second; a second in which the engine spoke is none of silence. */
function createWatch(timeoutMs = 60_000) {
  const watch = new EngineWatch({ timeoutMs, longestPauseMs: 2000 });
  let nowMs = 0;
  watch.isOverdue({ nowMs, remainingMs: undefined });
  /** Seconds of silence until it is overdue; undefined when it is not within the time. */
  const overdueAfterS = (remainingMs: number | undefined, withinS = 10_000): number | undefined => {
    for (let second = 1; second <= withinS; second++)
      if (watch.isOverdue({ nowMs: (nowMs += 1000), remainingMs })) return second;
    return undefined;
  };
  const pauseFor = (pauseMs: number): void => void (nowMs += pauseMs);
  return { watch, overdueAfterS, pauseFor };
}

it('bears silence for as long as the work should take, and never less than its timeout', () => {
  const { watch, overdueAfterS } = createWatch();
  watch.submitted('a');
  expect([overdueAfterS(1000), overdueAfterS(200_000)]).toEqual([62, 201]);
});

it('has more patience before the first step', () => {
  const { watch, overdueAfterS } = createWatch();
  watch.submitted('a');
  expect(overdueAfterS(undefined)).toBe(602);
});

it('counts from the last sign of life, and from the first work', () => {
  const { watch, overdueAfterS } = createWatch();
  expect(overdueAfterS(0, 100)).toBeUndefined();
  watch.submitted('a');
  expect(overdueAfterS(0, 50)).toBeUndefined();
  watch.submitted('b');
  expect(overdueAfterS(0, 9)).toBeUndefined();
  watch.observe([step]);
  expect(overdueAfterS(0)).toBe(62);
});

it('takes no engine for silent that speaks between two looks', () => {
  const { watch, overdueAfterS } = createWatch(500);
  watch.submitted('a');
  for (let second = 0; second < 9; second++) {
    watch.observe([step]);
    expect(overdueAfterS(0, 1)).toBeUndefined();
  }
  expect(overdueAfterS(0, 1)).toBe(1);
});

it.each<ExecutorEvent>([
  { type: 'request-done', requestId: 'a' },
  { type: 'request-canceled', requestId: 'a' },
  { type: 'request-failed', requestId: 'a', code: 'internal', message: '' },
  { type: 'engine-lost', message: '', requestIds: ['a'] },
])('expects nothing of an engine without work, after $type', (event) => {
  const { watch, overdueAfterS } = createWatch();
  watch.submitted('a');
  watch.observe([event]);
  expect(overdueAfterS(0)).toBeUndefined();
});

it('takes a time in which nobody looked for one in which nothing ran', () => {
  const { watch, overdueAfterS, pauseFor } = createWatch();
  watch.submitted('a');
  expect(overdueAfterS(0, 10)).toBeUndefined();
  pauseFor(3_600_000);
  // After nine seconds of silence, and two that the pause counts.
  expect(overdueAfterS(0)).toBe(51);
});
