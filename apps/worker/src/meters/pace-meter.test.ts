import type { ExecutorEvent } from '@darkroom/executor';
import { expect, it } from 'vitest';
import type { ActiveRequest } from '../request/active-request.ts';
import { PaceMeter } from './pace-meter.ts';

/** One row of ten steps that costs a unit for each. */
const active = new Map([['a', { rowCost: 10, remainingCost: 7 } as ActiveRequest]]);

function step(number: number, { stepMs = 5, tableSlots = 1 } = {}): ExecutorEvent[] {
  return [
    { type: 'stats', shapeKey: '8x8', rows: 1, modelRows: 1, tableSlots, waitingRequests: 0, stepMs },
    { type: 'progress', requestId: 'a', index: 0, done: number, total: 10 },
  ];
}

it('knows nothing before the first step', () => {
  expect(new PaceMeter().read(active)).toBeUndefined();
});

it('takes the time from step to step while it is busy, so that what comes between counts', () => {
  const meter = new PaceMeter();
  meter.observe(step(1), active, 1000);
  for (let number = 2; number <= 10; number++) meter.observe(step(number), active, 1000 + number * 20);
  expect(meter.read(active)).toEqual({
    costMs: { fast: 20, slow: 20 },
    stepMs: { fast: 20, slow: 20 },
    remainingCost: 7,
  });
});

it('does not count the time without work as a step', () => {
  const meter = new PaceMeter();
  meter.observe(step(10), active, 1000);
  meter.observe(step(1), active, 60_000);
  meter.observe([{ type: 'request-canceled', requestId: 'a' }], active, 60_010);
  meter.observe(step(1), active, 120_000);
  expect(meter.read(active)!.stepMs).toEqual({ fast: 5, slow: 5 });
});

it('gives the range from the fast to the slow, of the last steps only', () => {
  const meter = new PaceMeter();
  for (let count = 0; count < 100; count++) meter.observe(step(10, { stepMs: 500 }), active, count);
  for (let count = 0; count < 64; count++) meter.observe(step(10, { stepMs: 10 + count }), active, count);
  expect(meter.read(active)!.stepMs).toEqual({ fast: 16, slow: 67 });
});
