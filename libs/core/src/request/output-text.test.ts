import { expect, it } from 'vitest';
import { type TextEvent, textAfter } from './output-text.ts';

const common = { sequence: 1, timestampMs: 0, index: 0 };

function read(events: readonly TextEvent[]): string {
  return events.reduce(textAfter, '');
}

function delta(offset: number, text: string): TextEvent {
  return { ...common, type: 'delta', offset, text };
}

function snapshot(offset: number, text: string): TextEvent {
  return { ...common, type: 'snapshot', offset, text };
}

it('grows by what is appended, and takes nothing twice', () => {
  expect(read([delta(0, 'a fox '), delta(6, 'on the '), delta(13, 'moon')])).toBe('a fox on the moon');
  expect(read([delta(0, 'a fox '), delta(0, 'a fox '), delta(2, 'fox on'), delta(4, 'x')])).toBe('a fox on');
});

it('has no gap that nobody could see', () => {
  expect(read([delta(0, 'a fox '), delta(13, 'moon')])).toBe('a fox ');
  expect(read([delta(0, 'a fox '), delta(13, 'moon'), snapshot(0, 'a fox on the moon')])).toBe('a fox on the moon');
});

it('is what a snapshot says from its offset on', () => {
  expect(read([delta(0, 'a fox ____'), snapshot(6, 'o__n'), snapshot(6, 'on it')])).toBe('a fox on it');
  // A compacted log: what was read of it before stays the same.
  expect(read([delta(0, 'a fox'), snapshot(0, 'a fox on the moon'), delta(17, '.')])).toBe('a fox on the moon.');
});

it('is cut where a rerun differs', () => {
  expect(read([delta(0, 'a fox on'), { ...common, type: 'reset', offset: 2 }, delta(2, 'cat')])).toBe('a cat');
});
