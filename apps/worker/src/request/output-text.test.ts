import type { OutputText } from '@darkroom/core';
import { expect, it } from 'vitest';
import { OutputTextLog, type TextNotes } from './output-text.ts';

const index = 0;

function say(log: OutputTextLog, offset: number, text: string): TextNotes {
  return log.add({ type: 'delta', index, offset, text });
}

/** What comes of a letter at a time from there on, with the number of letters after which it does. */
function wholesOf(log: OutputTextLog, from: number, letters: number): (OutputText & { after: number })[] {
  return Array.from({ length: letters }, (_value, said) => {
    const { whole } = say(log, from + said, String((from + said) % 10));
    return whole === undefined ? [] : [{ after: said + 1, ...whole }];
  }).flat();
}

const digits = '0123456789'.repeat(30);

it('says everything again after so many pieces, and begins to count anew', () => {
  expect(wholesOf(new OutputTextLog(), 0, 130)).toEqual([
    { after: 64, index, offset: 0, text: digits.slice(0, 63) },
    { after: 127, index, offset: 0, text: digits.slice(0, 126) },
  ]);
});

it('says everything again, though an earlier delivery said the beginning', () => {
  const log = new OutputTextLog(digits.slice(0, 200));
  expect(wholesOf(log, 200, 70)).toEqual([{ after: 64, index, offset: 0, text: digits.slice(0, 263) }]);
  // From a checkpoint that is older than what stands.
  const rerun = new OutputTextLog(digits.slice(0, 200));
  expect(wholesOf(rerun, 180, 84)).toEqual([{ after: 84, index, offset: 0, text: digits.slice(0, 263) }]);
});

it('never says that it knows everything when something was lost', () => {
  const log = new OutputTextLog('01');
  expect(wholesOf(log, 5, 200)).toEqual([]);
  expect(log.endsAt).toBeUndefined();
});

it('says from where on a rerun differs, and where it ends', () => {
  const log = new OutputTextLog('a red fox');
  expect(log.endsAt).toBeUndefined();
  expect(say(log, 0, 'a red')).toEqual({ isRepeated: true });
  expect(log.endsAt).toBe(5);
  expect(say(log, 5, ' cat')).toEqual({ differsFrom: 5 });
  expect(say(log, 9, ' on it')).toEqual({});
  expect(log.endsAt).toBeUndefined();
  // What is worked on in place says by itself that it does.
  expect(log.add({ type: 'snapshot', index, offset: 6, text: 'o_l' })).toEqual({});
  expect(log.endsAt).toBeUndefined();
});

it('takes what stands already as it is, and no less of it', () => {
  const log = new OutputTextLog('a red fox');
  expect(say(log, 0, 'a ')).toEqual({ isRepeated: true });
  expect(say(log, 2, 'red')).toEqual({ isRepeated: true });
  expect(say(log, 5, ' fox, ')).toEqual({});
  expect(wholesOf(log, 11, 63)).toMatchObject([{ text: `a red fox, ${digits.slice(11, 73)}` }]);
});

it('leaves what is worked on out of what stays', () => {
  const log = new OutputTextLog();
  say(log, 0, 'a red ');
  const blocks = Array.from({ length: 63 }, () => log.add({ type: 'snapshot', index, offset: 6, text: 'f_x' }));
  expect(blocks.at(-1)).toEqual({ whole: { index, offset: 0, text: 'a red ' } });
});
