import { expect, it } from 'vitest';
import { agoWords, spanWords } from './time-words.ts';

it.each([
  [-2, '0.0 s'],
  [0.44, '0.4 s'],
  [9.9, '9.9 s'],
  [10.9, '10 s'],
  [59.9, '59 s'],
  [60, '1 min'],
  [3599, '59 min'],
  [7300, '2 h'],
  [200_000, '2 d'],
])('formats %s s as %s', (seconds, words) => {
  expect(spanWords(seconds)).toBe(words);
});

it('formats the age of a time by the given clock', () => {
  expect(agoWords('2026-11-21T10:00:00.000Z', '2026-11-21T10:00:42.000Z')).toBe('42 s ago');
});
