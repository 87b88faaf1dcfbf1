import { expect, it } from 'vitest';
import { type TextChange, textAfter } from './output-text.ts';

function read(events: readonly TextChange[]): string {
  return events.reduce(textAfter, '');
}

function delta(offset: number, text: string): TextChange {
  return { type: 'delta', offset, text };
}

function snapshot(offset: number, text: string): TextChange {
  return { type: 'snapshot', offset, text };
}

it('appends deltas, and applies repeated ones once', () => {
  expect(read([delta(0, 'a fox '), delta(6, 'on the '), delta(13, 'moon')])).toBe('a fox on the moon');
  expect(read([delta(0, 'a fox '), delta(0, 'a fox '), delta(2, 'fox on'), delta(4, 'x')])).toBe('a fox on');
});

it('ignores a delta behind a gap until a snapshot fills it', () => {
  expect(read([delta(0, 'a fox '), delta(13, 'moon')])).toBe('a fox ');
  expect(read([delta(0, 'a fox '), delta(13, 'moon'), snapshot(0, 'a fox on the moon')])).toBe('a fox on the moon');
});

it('replaces the text from the offset of a snapshot on', () => {
  expect(read([delta(0, 'a fox ____'), snapshot(6, 'o__n'), snapshot(6, 'on it')])).toBe('a fox on it');
  // A compacted log gives the same text as the full log.
  expect(read([delta(0, 'a fox'), snapshot(0, 'a fox on the moon'), delta(17, '.')])).toBe('a fox on the moon.');
});

it('is cut at the offset of a reset', () => {
  expect(read([delta(0, 'a fox on'), { type: 'reset', offset: 2 }, delta(2, 'cat')])).toBe('a cat');
});
