import { expect, it } from 'vitest';
import { StepPace } from './step-pace.ts';

/** Of steps of reading, each of which takes some time for every token and some for the call. */
function paceOf({ most, msPerToken, callMs, writeMs }: Record<'most' | 'msPerToken' | 'callMs' | 'writeMs', number>) {
  const pace = new StepPace(most);
  return Array.from({ length: 40 }, () => {
    const { tokens } = pace;
    pace.hasWritten(writeMs);
    pace.hasRead(callMs + tokens * msPerToken);
    return tokens;
  });
}

it('reads as many tokens as take no longer than a step of writing', () => {
  const later = paceOf({ most: 1000, msPerToken: 0.1, callMs: 1, writeMs: 6 }).slice(20);
  // 50 tokens take 6 ms.
  expect(Math.max(...later)).toBeLessThanOrEqual(50 + 8);
  expect(Math.min(...later)).toBeGreaterThanOrEqual(25);
});

it('reads at least some, and never more than it may', () => {
  expect(paceOf({ most: 64, msPerToken: 10, callMs: 1, writeMs: 6 }).at(-1)).toBe(8);
  expect(paceOf({ most: 64, msPerToken: 0, callMs: 1, writeMs: 6 }).at(-1)).toBe(64);
  expect(paceOf({ most: 4, msPerToken: 0, callMs: 1, writeMs: 6 })[0]).toBe(4);
});
