import type { OutputText } from '@darkroom/core';
import { expect, it } from 'vitest';
import { createTextReader } from './follow-texts.ts';

type Piece =
  | ({ type: 'delta' | 'snapshot'; isWhole?: true } & Omit<OutputText, 'index'>)
  | { type: 'reset'; offset: number };

/** What a reader makes of pieces of one text: where each begins, in tokens, its text and its ids. */
function read(pieces: readonly Piece[]): unknown[] {
  const itemsOf = createTextReader('r1');
  return pieces.flatMap((piece, at) =>
    [...itemsOf({ sequence: at + 1, timestampMs: 1, index: 0, ...piece })].map((item) => {
      if (item.type === 'finished') return item;
      if (item.type === 'taken-back') return [item.type, item.length];
      const { type, tokenOffset, text, facts } = item;
      return [type, tokenOffset, text, facts?.['ids'], facts?.['logprobs']];
    }),
  );
}

const delta = (offset: number, text: string, done: number, ids: string, logprobs?: string): Piece => ({
  type: 'delta',
  offset,
  text,
  done,
  facts: { ids, ...(logprobs !== undefined && { logprobs }) },
});

const block = (offset: number, text: string, facts: object): Piece => ({
  type: 'snapshot',
  offset,
  text,
  done: 2,
  facts: { ids: '1,2,', calls: 1, ...facts },
});

it('says each piece once, and of a piece that was said in part the rest, with its tokens', () => {
  const pieces = [
    delta(0, 'a red ', 2, '1,2,', 'one\ntwo\n'),
    delta(6, 'fox', 3, '3,', 'three\n'),
    // Another worker goes on from where there was one token.
    delta(2, 'red fox and', 4, '2,3,4,', 'two\nthree\nfour\n'),
    delta(2, 'red fox and', 4, '2,3,4,', 'two\nthree\nfour\n'),
    // Tokens without a text of their own.
    delta(13, '', 6, '5,6,', 'five\nsix\n'),
    delta(13, '', 6, '5,6,', 'five\nsix\n'),
  ];
  expect(read(pieces)).toEqual([
    ['added', 0, 'a red ', '1,2,', 'one\ntwo\n'],
    ['added', 2, 'fox', '3,', 'three\n'],
    ['added', 3, ' and', '4,', 'four\n'],
    ['added', 4, '', '5,6,', 'five\nsix\n'],
  ]);
});

it('takes a log that was made shorter for what stands there, with all its tokens', () => {
  const whole: Piece = {
    type: 'snapshot',
    isWhole: true,
    offset: 0,
    text: 'a red fox',
    done: 3,
    facts: { ids: '1,2,3,' },
  };
  const next = delta(9, '!', 4, '4,');
  expect(read([whole, next])).toEqual([
    ['added', 0, 'a red fox', '1,2,3,', undefined],
    ['added', 3, '!', '4,', undefined],
  ]);
  // One who was there before has the rest of it.
  expect(read([delta(0, 'a red ', 2, '1,2,'), whole, next])).toEqual([
    ['added', 0, 'a red ', '1,2,', undefined],
    ['added', 2, 'fox', '3,', undefined],
    ['added', 3, '!', '4,', undefined],
  ]);
});

it('shows a block after all that stays, and adds it once it is settled', () => {
  const settled = block(0, 'a fox', { settled: 1 });
  expect(read([block(0, 'a░', {}), settled, block(5, '░', { ids: '0,' }), block(0, 'a░', {}), settled])).toEqual([
    ['block', 0, 'a░', '1,2,', undefined],
    ['added', 0, 'a fox', '1,2,', undefined],
    ['block', 2, '░', '0,', undefined],
  ]);
});

it('is told where the log has lost text, and goes on only where the whole is read elsewhere', () => {
  const pieces = [delta(0, 'a ', 1, '1,'), delta(6, 'fox', 3, '3,'), delta(9, '!', 4, '4,')];
  expect(() => read(pieces)).toThrow('The beginning of the text of request r1 is no longer kept.');
  // What is shown of a block stands after what was lost too.
  expect(() => read([block(3, 'a░', {})])).toThrow('is no longer kept');
  const itemsOf = createTextReader('r1', { mayLose: true });
  const items = pieces.flatMap((piece) => [...itemsOf({ sequence: 1, timestampMs: 1, index: 0, ...piece })]);
  expect(items).toMatchObject([{ facts: { ids: '1,' } }, { text: 'fox', facts: undefined }, { facts: { ids: '4,' } }]);
});

it('does without the facts of an older worker', () => {
  const old: Piece = { type: 'snapshot', offset: 0, text: 'a red fox' };
  expect(read([old, { type: 'delta', offset: 2, text: 'red fox!', facts: { ids: '9,' } }])).toEqual([
    ['added', 0, 'a red fox', undefined, undefined],
    ['added', 0, '!', undefined, undefined],
  ]);
});

it('takes back what a rerun writes otherwise, and only that', () => {
  const said = [delta(0, 'a red ', 2, '1,2,'), delta(6, 'fox on', 4, '3,4,')];
  const kept: Piece = { type: 'snapshot', isWhole: true, offset: 0, text: 'a red ' };
  const first = [
    ['added', 0, 'a red ', '1,2,', undefined],
    ['added', 2, 'fox on', '3,4,', undefined],
  ];
  // With the reset, or without it where it has been made one with what stands.
  for (const back of [[{ type: 'reset', offset: 6 } as const], [{ type: 'reset', offset: 6 } as const, kept], [kept]]) {
    expect(read([...said, ...back, delta(6, 'fog', 3, '9,'), delta(9, '!', 4, '8,')])).toEqual([
      ...first,
      ['taken-back', 8],
      ['added', 4, 'g', undefined, undefined],
      ['added', 3, '!', '8,', undefined],
    ]);
    // It came to the same.
    expect(read([...said, ...back, delta(6, 'fox', 3, '9,'), delta(9, ' on it', 5, '8,7,')])).toEqual([
      ...first,
      ['added', 4, ' it', undefined, undefined],
    ]);
  }
});

it('takes back at the end what was not written again', () => {
  const itemsOf = createTextReader('x');
  const common = { sequence: 1, timestampMs: 1 };
  const output = { index: 0, contentType: 'text/plain', bytes: 5, chunks: 1 };
  const items = [
    { ...common, type: 'delta' as const, index: 0, offset: 0, text: 'a red fox' },
    { ...common, type: 'reset' as const, index: 0, offset: 5 },
    { ...common, type: 'output' as const, output, chunkIndex: 0 },
    { ...common, type: 'succeeded' as const, outputs: [output] },
  ].flatMap((event) => [...itemsOf(event)]);
  expect(items.map(({ type }) => type)).toEqual(['added', 'taken-back', 'finished']);
  expect(items[1]).toEqual({ type: 'taken-back', index: 0, length: 5 });
});
