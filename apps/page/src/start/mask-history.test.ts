import { expect, it } from 'vitest';
import { blankHistory, type MaskMark, withLastAgain, withMark, withoutLast } from './mask-history.ts';

const stroke: MaskMark = { kind: 'stroke', isEraser: false, width: 10, points: [{ x: 1, y: 2 }] };
const invert: MaskMark = { kind: 'invert' };
const clear: MaskMark = { kind: 'clear' };
const three = [stroke, invert, clear].reduce(withMark, blankHistory);

it('takes back what was done, the last first, and does it again in the same order', () => {
  const back = withoutLast(withoutLast(three));
  expect(back).toEqual({ done: [stroke], undone: [invert, clear] });
  expect(withLastAgain(back)).toEqual({ done: [stroke, invert], undone: [clear] });
  expect(withLastAgain(withLastAgain(back))).toEqual(three);
});

it('stays as it is where there is nothing to take back or to do again', () => {
  expect(withoutLast(blankHistory)).toBe(blankHistory);
  expect(withLastAgain(three)).toBe(three);
});

it('forgets what was taken back when something else is done', () => {
  const other = withMark(withoutLast(three), stroke);
  expect(other).toEqual({ done: [stroke, invert, stroke], undone: [] });
  expect(withLastAgain(other)).toBe(other);
});

it('leaves what it was made of unchanged', () => {
  withMark(withoutLast(three), stroke);
  expect(three).toEqual({ done: [stroke, invert, clear], undone: [] });
});
