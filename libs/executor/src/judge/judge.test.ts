import { expect, it } from 'vitest';
import { judgeTimeoutOf } from './judge.ts';

it('limits a verdict to 10 s, and to half of the time after which a silent engine counts as hung', () => {
  expect([4, 20, 60].map(judgeTimeoutOf)).toEqual([2000, 10_000, 10_000]);
});
