import { expect, it } from 'vitest';
import { blankHistory, type MaskMark, withLastAgain, withMark, withoutLast } from './mask-history.ts';

const stroke: MaskMark = { kind: 'stroke', isEraser: false, width: 10, points: [{ x: 1, y: 2 }] };
const invert: MaskMark = { kind: 'invert' };
const clear: MaskMark = { kind: 'clear' };
const three = [stroke, invert, clear].reduce(withMark, blankHistory);

it('undoes the last mark first, and redoes in the original order', () => {
  const back = withoutLast(withoutLast(three));
  expect(back).toEqual({ done: [stroke], undone: [invert, clear] });
  expect(withLastAgain(back)).toEqual({ done: [stroke, invert], undone: [clear] });
  expect(withLastAgain(withLastAgain(back))).toEqual(three);
});

it('is unchanged if there is nothing to undo or redo', () => {
  expect(withoutLast(blankHistory)).toBe(blankHistory);
  expect(withLastAgain(three)).toBe(three);
});

it('discards undone marks when a new one is added', () => {
  const other = withMark(withoutLast(three), stroke);
  expect(other).toEqual({ done: [stroke, invert, stroke], undone: [] });
  expect(withLastAgain(other)).toBe(other);
});

it('does not change the previous history', () => {
  withMark(withoutLast(three), stroke);
  expect(three).toEqual({ done: [stroke, invert, clear], undone: [] });
});
