import { textAfter } from '@darkroom/core';
import { expect, it } from 'vitest';
import { OutputTextLog, type SaidPiece } from './output-text.ts';

function delta(at: number): SaidPiece {
  return { type: 'delta', offset: at, text: String(at % 10), done: at + 1, facts: { ids: `${at},` } };
}

const idsUpTo = (count: number): string => Array.from({ length: count }, (_, at) => `${at},`).join('');

it('says everything again after so many pieces, with all that was said of it, and the more rarely the longer it is', () => {
  const log = new OutputTextLog();
  const wholes: unknown[] = [];
  for (let at = 0; at < 1000; at++) {
    const whole = log.add(delta(at));
    if (whole !== undefined) wholes.push(whole);
  }
  const digits = '0123456789'.repeat(100);
  const wholeOf = (count: number) => ({
    offset: 0,
    text: digits.slice(0, count),
    done: count,
    facts: { ids: idsUpTo(count) },
  });
  expect(wholes).toEqual([64, 128, 192, 256, 320, 384, 448, 512, 585, 668, 763, 872, 996].map(wholeOf));
});

it('says nothing again of a block that is worked on', () => {
  const log = new OutputTextLog();
  const wholes: unknown[] = [];
  let text = '';
  for (let block = 0; block < 30; block++)
    for (let call = 1; call <= 3; call++) {
      const settled = call === 3 ? { settled: 1 } : {};
      const facts = { ids: `${block},`, calls: block * 3 + call, ...settled };
      const piece = { type: 'snapshot', offset: block, text: call === 3 ? 'x' : '░', done: block + 1, facts } as const;
      const whole = log.add(piece);
      if (whole !== undefined) wholes.push(whole);
      text = textAfter(text, { ...piece, index: 0, sequence: 0, timestampMs: 0 });
    }
  expect(text).toBe('x'.repeat(30));
  // Of the 66th piece, the third of its block, nothing is said before the next block has begun.
  expect(wholes).toEqual([
    { offset: 0, text: 'x'.repeat(22), done: 22, facts: { ids: idsUpTo(22), calls: 66, settled: 1 } },
  ]);
});

it('a piece that begins before the end takes the place of what stood there', () => {
  const log = new OutputTextLog();
  log.add({ type: 'delta', offset: 0, text: 'a red ' });
  log.add({ type: 'delta', offset: 6, text: 'apple' });
  log.add({ type: 'snapshot', offset: 6, text: 'fox' });
  let whole: unknown;
  for (let piece = 0; piece < 62; piece++) whole = log.add({ type: 'delta', offset: 9 + piece, text: '!' });
  expect(whole).toEqual({ offset: 0, text: `a red fox${'!'.repeat(61)}` });
});

it('never says that it knows everything when an earlier delivery said the beginning', () => {
  const log = new OutputTextLog();
  for (let offset = 5; offset < 205; offset++) expect(log.add({ type: 'delta', offset, text: 'x' })).toBeUndefined();
});
