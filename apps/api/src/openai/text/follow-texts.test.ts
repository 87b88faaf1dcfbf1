import type { OutputText } from '@darkroom/core';
import { expect, it } from 'vitest';
import { createTextFollower } from './follow-texts.ts';

type Chunk =
  | ({ type: 'delta' | 'snapshot'; isWhole?: true } & Omit<OutputText, 'index'>)
  | { type: 'reset'; offset: number };

/** Follows the chunks of one text. Returns the type, token offset, text, ids and logprobs of each item. */
function read(chunks: readonly Chunk[]): unknown[] {
  const itemsOf = createTextFollower('r1');
  return chunks.flatMap((chunk, at) =>
    [...itemsOf({ sequence: at + 1, timestampMs: 1, index: 0, ...chunk })].map((item) => {
      if (item.type === 'finished') return item;
      if (item.type === 'taken-back') return [item.type, item.length];
      const { type, tokenOffset, text, facts } = item;
      return [type, tokenOffset, text, facts?.['ids'], facts?.['logprobs']];
    }),
  );
}

const delta = (offset: number, text: string, done: number, ids: string, logprobs?: string): Chunk => ({
  type: 'delta',
  offset,
  text,
  done,
  facts: { ids, ...(logprobs !== undefined && { logprobs }) },
});

const block = (offset: number, text: string, facts: object): Chunk => ({
  type: 'snapshot',
  offset,
  text,
  done: 2,
  facts: { ids: '1,2,', calls: 1, ...facts },
});

it('emits each chunk once, and only the new text and tokens of a partly repeated chunk', () => {
  const chunks = [
    delta(0, 'a red ', 2, '1,2,', 'one\ntwo\n'),
    delta(6, 'fox', 3, '3,', 'three\n'),
    // Another worker resumes after the first token, so its chunk overlaps both.
    delta(2, 'red fox and', 4, '2,3,4,', 'two\nthree\nfour\n'),
    delta(2, 'red fox and', 4, '2,3,4,', 'two\nthree\nfour\n'),
    // Tokens without text.
    delta(13, '', 6, '5,6,', 'five\nsix\n'),
    delta(13, '', 6, '5,6,', 'five\nsix\n'),
  ];
  expect(read(chunks)).toEqual([
    ['added', 0, 'a red ', '1,2,', 'one\ntwo\n'],
    ['added', 2, 'fox', '3,', 'three\n'],
    ['added', 3, ' and', '4,', 'four\n'],
    ['added', 4, '', '5,6,', 'five\nsix\n'],
  ]);
});

it('emits all text and tokens of a compacted log', () => {
  const compacted: Chunk = {
    type: 'snapshot',
    isWhole: true,
    offset: 0,
    text: 'a red fox',
    done: 3,
    facts: { ids: '1,2,3,' },
  };
  const next = delta(9, '!', 4, '4,');
  expect(read([compacted, next])).toEqual([
    ['added', 0, 'a red fox', '1,2,3,', undefined],
    ['added', 3, '!', '4,', undefined],
  ]);
  // A follower that has emitted the prefix emits only the rest.
  expect(read([delta(0, 'a red ', 2, '1,2,'), compacted, next])).toEqual([
    ['added', 0, 'a red ', '1,2,', undefined],
    ['added', 2, 'fox', '3,', undefined],
    ['added', 3, '!', '4,', undefined],
  ]);
});

it('emits an unfinished block after the final text, and adds its text once it is settled', () => {
  const settled = block(0, 'a fox', { settled: 1 });
  expect(read([block(0, 'a░', {}), settled, block(5, '░', { ids: '0,' }), block(0, 'a░', {}), settled])).toEqual([
    ['block', 0, 'a░', '1,2,', undefined],
    ['added', 0, 'a fox', '1,2,', undefined],
    ['block', 2, '░', '0,', undefined],
  ]);
});

it('throws if the log was trimmed before text that was not read, unless gaps are allowed', () => {
  const chunks = [delta(0, 'a ', 1, '1,'), delta(6, 'fox', 3, '3,'), delta(9, '!', 4, '4,')];
  expect(() => read(chunks)).toThrow('The beginning of the text of request r1 is no longer stored.');
  // An unfinished block after the gap throws too.
  expect(() => read([block(3, 'a░', {})])).toThrow('is no longer stored');
  const itemsOf = createTextFollower('r1', { allowGaps: true });
  const items = chunks.flatMap((chunk) => [...itemsOf({ sequence: 1, timestampMs: 1, index: 0, ...chunk })]);
  expect(items).toMatchObject([{ facts: { ids: '1,' } }, { text: 'fox', facts: undefined }, { facts: { ids: '4,' } }]);
});

it('accepts events without metadata or token counts', () => {
  const plain: Chunk = { type: 'snapshot', offset: 0, text: 'a red fox' };
  expect(read([plain, { type: 'delta', offset: 2, text: 'red fox!', facts: { ids: '9,' } }])).toEqual([
    ['added', 0, 'a red fox', undefined, undefined],
    ['added', 0, '!', undefined, undefined],
  ]);
});

it('retracts only the text that a rerun writes differently', () => {
  const deltas = [delta(0, 'a red ', 2, '1,2,'), delta(6, 'fox on', 4, '3,4,')];
  const reset: Chunk = { type: 'reset', offset: 6 };
  const compacted: Chunk = { type: 'snapshot', isWhole: true, offset: 0, text: 'a red ' };
  const first = [
    ['added', 0, 'a red ', '1,2,', undefined],
    ['added', 2, 'fox on', '3,4,', undefined],
  ];
  // Compaction replaces a reset by a snapshot; the follower may already have read the reset.
  for (const cut of [[reset], [reset, compacted], [compacted]]) {
    expect(read([...deltas, ...cut, delta(6, 'fog', 3, '9,'), delta(9, '!', 4, '8,')])).toEqual([
      ...first,
      ['taken-back', 8],
      ['added', 4, 'g', undefined, undefined],
      ['added', 3, '!', '8,', undefined],
    ]);
    // The rerun writes the same text.
    expect(read([...deltas, ...cut, delta(6, 'fox', 3, '9,'), delta(9, ' on it', 5, '8,7,')])).toEqual([
      ...first,
      ['added', 4, ' it', undefined, undefined],
    ]);
  }
});

it('retracts the text that a rerun has not written again when the output ends', () => {
  const itemsOf = createTextFollower('x');
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
