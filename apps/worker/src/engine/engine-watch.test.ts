import type { WorkerPace } from '@darkroom/core';
import type { ExecutorEvent } from '@darkroom/executor';
import { expect, it } from 'vitest';
import { EngineWatch } from './engine-watch.ts';

const step: ExecutorEvent = {
  type: 'stats',
  shapeKey: '64x64',
  rows: 1,
  modelRows: 1,
  tableSlots: 1,
  waitingRequests: 0,
  stepMs: 1,
};

function paceOf(remainingCost: number | undefined, stepMs = 0): WorkerPace | undefined {
  if (remainingCost === undefined) return undefined;
  return { costMs: { fast: 0, slow: 1 }, stepMs: { fast: 0, slow: stepMs }, remainingCost };
}

/** Looks once a second; a second in which the engine spoke is none of silence. */
function createWatch({ timeoutMs = 60_000, hasStepped = true } = {}) {
  const watch = new EngineWatch({ timeoutMs, longestPauseMs: 2000 });
  let nowMs = 0;
  if (hasStepped) watch.observe([step]);
  watch.look(nowMs, undefined);
  /** Seconds of silence until it is overdue; undefined when it is not within the time. */
  const overdueAfterS = (
    remainingMs: number | undefined,
    { withinS = 10_000, stepMs = remainingMs === undefined ? undefined : 1000 } = {},
  ): number | undefined => {
    for (let second = 1; second <= withinS; second++)
      if (watch.look((nowMs += 1000), paceOf(remainingMs, stepMs)) > 0) return second;
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

it('has more patience before the first step, of each engine', () => {
  const { watch, overdueAfterS } = createWatch({ hasStepped: false });
  watch.submitted('a');
  expect(overdueAfterS(undefined)).toBe(602);
  watch.observe([step]);
  expect(overdueAfterS(0)).toBe(62);
  watch.observe([{ type: 'engine-lost', message: '', requestIds: ['a'] }]);
  watch.submitted('a');
  // The pace of the engine before is known.
  expect(overdueAfterS(1000)).toBe(602);
});

it('bears that a picture is decoded, after the last step, as long as some steps take', () => {
  const { watch, overdueAfterS } = createWatch();
  watch.submitted('a');
  expect(overdueAfterS(0, { stepMs: 30_000 })).toBe(302);
});

it('counts from the last sign of life, and from the first work', () => {
  const { watch, overdueAfterS } = createWatch();
  expect(overdueAfterS(0, { withinS: 100 })).toBeUndefined();
  watch.submitted('a');
  expect(overdueAfterS(0, { withinS: 50 })).toBeUndefined();
  watch.submitted('b');
  expect(overdueAfterS(0, { withinS: 9 })).toBeUndefined();
  watch.observe([step]);
  expect(overdueAfterS(0)).toBe(62);
});

it('takes no engine for silent that speaks between two looks', () => {
  const { watch, overdueAfterS } = createWatch({ timeoutMs: 500 });
  watch.submitted('a');
  for (let second = 0; second < 9; second++) {
    watch.observe([step]);
    expect(overdueAfterS(0, { withinS: 1, stepMs: 10 })).toBeUndefined();
  }
  expect(overdueAfterS(0, { withinS: 1, stepMs: 10 })).toBe(1);
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
  expect(overdueAfterS(0, { withinS: 10 })).toBeUndefined();
  pauseFor(3_600_000);
  // After nine seconds of silence, and two that the pause counts.
  expect(overdueAfterS(0)).toBe(51);
});

it('has more patience with an engine that was started again in order', () => {
  const { watch, overdueAfterS } = createWatch();
  watch.renew();
  watch.submitted('a');
  expect(overdueAfterS(undefined)).toBe(602);
});
