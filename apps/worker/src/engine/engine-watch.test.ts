import type { WorkerThroughput } from '@darkroom/core';
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

function paceOf(remainingCost: number | undefined, stepMs = 0): WorkerThroughput | undefined {
  if (remainingCost === undefined) return undefined;
  return { costMs: { fast: 0, slow: 1 }, stepMs: { fast: 0, slow: stepMs }, remainingCost };
}

/** Polls the watch once per second; a second with an engine event is not counted as silence. */
function createWatch({ timeoutMs = 60_000, hasStepped = true } = {}) {
  const watch = new EngineWatch({ timeoutMs, maxGapMs: 2000 });
  let nowMs = 0;
  if (hasStepped) watch.observe([step]);
  watch.poll(nowMs, undefined);
  /** Seconds of silence until the engine is overdue; undefined if that takes longer than `withinS`. */
  const overdueAfterS = (
    remainingMs: number | undefined,
    { withinS = 10_000, stepMs = remainingMs === undefined ? undefined : 1000 } = {},
  ): number | undefined => {
    for (let second = 1; second <= withinS; second++)
      if (watch.poll((nowMs += 1000), paceOf(remainingMs, stepMs)) > 0) return second;
    return undefined;
  };
  const pauseFor = (pauseMs: number): void => void (nowMs += pauseMs);
  return { watch, overdueAfterS, pauseFor };
}

it('tolerates silence as long as the work should take, and at least the timeout', () => {
  const { watch, overdueAfterS } = createWatch();
  watch.submitted('a');
  expect([overdueAfterS(1000), overdueAfterS(200_000)]).toEqual([62, 201]);
});

it('allows ten times the timeout before the first step of each engine', () => {
  const { watch, overdueAfterS } = createWatch({ hasStepped: false });
  watch.submitted('a');
  expect(overdueAfterS(undefined)).toBe(602);
  watch.observe([step]);
  expect(overdueAfterS(0)).toBe(62);
  watch.observe([{ type: 'engine-lost', message: '', requestIds: ['a'] }]);
  watch.submitted('a');
  // The pace of the previous engine is still known.
  expect(overdueAfterS(1000)).toBe(602);
});

it('tolerates the decoding of an image after the last step for as long as ten steps take', () => {
  const { watch, overdueAfterS } = createWatch();
  watch.submitted('a');
  expect(overdueAfterS(0, { stepMs: 30_000 })).toBe(302);
});

it('counts silence from the last event, and from the first request', () => {
  const { watch, overdueAfterS } = createWatch();
  expect(overdueAfterS(0, { withinS: 100 })).toBeUndefined();
  watch.submitted('a');
  expect(overdueAfterS(0, { withinS: 50 })).toBeUndefined();
  watch.submitted('b');
  expect(overdueAfterS(0, { withinS: 9 })).toBeUndefined();
  watch.observe([step]);
  expect(overdueAfterS(0)).toBe(62);
});

it('does not count silence when an event arrives between two polls', () => {
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

it('counts a long gap between two polls as a pause of the process', () => {
  const { watch, overdueAfterS, pauseFor } = createWatch();
  watch.submitted('a');
  expect(overdueAfterS(0, { withinS: 10 })).toBeUndefined();
  pauseFor(3_600_000);
  // Nine seconds of silence, plus two counted for the pause.
  expect(overdueAfterS(0)).toBe(51);
});

it('allows ten times the timeout again after an intended restart', () => {
  const { watch, overdueAfterS } = createWatch();
  watch.reset();
  watch.submitted('a');
  expect(overdueAfterS(undefined)).toBe(602);
});
