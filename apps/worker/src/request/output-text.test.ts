import type { Metadata } from '@darkroom/core';
import { textAfter, type StoredTextEvent, type TextChunk } from '@darkroom/core';
import { expect, it } from 'vitest';
import { OutputTextLog, type TextChunkWrite, type TextNotes } from './output-text.ts';

const idsUpTo = (count: number): string => Array.from({ length: count }, (_, at) => `${at},`).join('');
const digits = '0123456789'.repeat(100);

function say(log: OutputTextLog, offset: number, text: string): TextNotes {
  return log.add({ type: 'delta', offset, text });
}

/** The digit at this offset. */
function digit(at: number): TextChunkWrite {
  return { type: 'delta', offset: at, text: String(at % 10), done: at + 1, facts: { ids: `${at},` } };
}

/** The full snapshots written while `count` digits are added. */
function wholesOf(log: OutputTextLog, from: number, count: number): TextChunk[] {
  return Array.from({ length: count }, (_, at) => log.add(digit(from + at)).whole ?? []).flat();
}

function toEvents(...chunks: TextChunkWrite[]): StoredTextEvent[] {
  return chunks.map((chunk) => ({ ...chunk, index: 0, sequence: 0, timestampMs: 0 }));
}

function wholeOf(count: number): TextChunk {
  return { offset: 0, text: digits.slice(0, count), done: count, facts: { ids: idsUpTo(count) } };
}

it('writes a full snapshot with all metadata after 64 chunks, and less often as the text grows', () => {
  expect(wholesOf(new OutputTextLog(), 0, 1000)).toEqual(
    [64, 128, 192, 256, 320, 384, 448, 512, 585, 668, 763, 872, 996].map(wholeOf),
  );
});

it('writes a full snapshot that includes the text of an earlier delivery', () => {
  const before = toEvents(...Array.from({ length: 40 }, (_, at) => digit(at)));
  expect(wholesOf(new OutputTextLog(before), 40, 30)).toEqual([wholeOf(64)]);
  // Rerun from a checkpoint older than the published text: no chunk counts twice.
  expect(wholesOf(new OutputTextLog(before), 20, 50)).toEqual([wholeOf(64)]);
});

it('writes no full snapshot while a block is being denoised', () => {
  const log = new OutputTextLog();
  const wholes: unknown[] = [];
  let text = '';
  for (let block = 0; block < 30; block++)
    for (let call = 1; call <= 3; call++) {
      const settled: Metadata = call === 3 ? { settled: 1 } : {};
      const facts: Metadata = { ids: `${block},`, calls: block * 3 + call, ...settled };
      const piece = { type: 'snapshot', offset: block, text: call === 3 ? 'x' : '░', done: block + 1, facts } as const;
      wholes.push(log.add(piece).whole ?? []);
      text = textAfter(text, toEvents(piece)[0]!);
    }
  expect(text).toBe('x'.repeat(30));
  // The 66th chunk is the third of its block, so the snapshot waits for the next block.
  expect(wholes.flat()).toEqual([
    { offset: 0, text: 'x'.repeat(22), done: 22, facts: { ids: idsUpTo(22), calls: 66, settled: 1 } },
  ]);
});

/** A model call that fixes one token of a block of two; the second call settles the block. */
function blockCall(block: number, call: number): TextChunkWrite {
  const settled: Metadata = call === 2 ? { settled: 1 } : {};
  const text = call === 2 ? 'xy' : 'x░';
  const facts = { ids: `${2 * block},${2 * block + 1},`, calls: 2 * block + call, ...settled };
  return { type: 'snapshot', offset: 2 * block, text, done: 2 * block + call, facts };
}

it('skips blocks already published on a rerun, and keeps their metadata', () => {
  const calls = Array.from({ length: 32 }, (_, block) => [blockCall(block, 1), blockCall(block, 2)]).flat();
  const log = new OutputTextLog(toEvents(...calls));
  // The rerun resumes at the third block.
  expect(calls.slice(4).map((call) => log.add(call))).toEqual(calls.slice(4).map(() => ({ isRepeated: true })));
  expect(log.add(blockCall(32, 1)).whole).toEqual({
    offset: 0,
    text: 'xy'.repeat(32),
    done: 64,
    facts: { ids: idsUpTo(64), calls: 64, settled: 1 },
  });
});

it('publishes a block that differs on a rerun', () => {
  const log = new OutputTextLog(toEvents(blockCall(0, 2), blockCall(1, 2)));
  expect(log.add(blockCall(0, 1))).toEqual({ isRepeated: true });
  expect(log.add({ ...blockCall(0, 2), text: 'xz' })).toEqual({});
  expect(log.add(blockCall(1, 2))).toEqual({});
});

it('publishes tokens without text yet only once', () => {
  const half: TextChunkWrite = { type: 'delta', offset: 2, text: '', done: 3, facts: { ids: '7,' } };
  const log = new OutputTextLog(
    toEvents({ type: 'delta', offset: 0, text: 'ab', done: 2, facts: { ids: '5,6,' } }, half),
  );
  expect(log.add(half)).toEqual({ isRepeated: true });
  expect(log.add({ ...half, done: 4 })).toEqual({});
});

it('replaces the text after the offset of a chunk that starts before the end', () => {
  const log = new OutputTextLog();
  say(log, 0, 'a red ');
  say(log, 6, 'apple');
  log.add({ type: 'snapshot', offset: 6, text: 'fox' });
  let notes: TextNotes = {};
  for (let piece = 0; piece < 62; piece++) notes = say(log, 9 + piece, '!');
  expect(notes.whole).toEqual({ offset: 0, text: `a red fox${'!'.repeat(61)}` });
});

it('writes no full snapshot when text is missing', () => {
  const log = new OutputTextLog(toEvents({ type: 'delta', offset: 0, text: '01' }));
  expect(wholesOf(log, 5, 200)).toEqual([]);
  expect(log.finish('0')).toEqual({});
});

it('reports the offset at which a rerun differs, and a rerun that ends earlier', () => {
  const log = new OutputTextLog(toEvents({ type: 'delta', offset: 0, text: 'a red fox' }));
  expect(say(log, 0, 'a red')).toEqual({ isRepeated: true });
  expect(log.finish('a red')).toEqual({ differsFrom: 5, whole: { offset: 0, text: 'a red', changedFrom: 5 } });
  expect(say(log, 5, ' cat')).toEqual({ differsFrom: 5, whole: { offset: 0, text: 'a red', changedFrom: 5 } });
  expect(say(log, 9, ' on it')).toEqual({});
  expect(log.finish('a red cat on it')).toEqual({});
  // A snapshot replaces text in place without a reset.
  expect(log.add({ type: 'snapshot', offset: 6, text: 'o_l' })).toEqual({});
  expect(log.finish('a red o_l')).toEqual({});
});

it('resets the text when a rerun writes nothing', () => {
  const log = new OutputTextLog(toEvents({ type: 'delta', offset: 0, text: 'a red fox' }));
  expect(log.finish('')).toEqual({ differsFrom: 0, whole: { offset: 0, text: '', changedFrom: 0 } });
  // A rerun that continues at the end of the published text adds nothing.
  expect(log.finish('a red fox')).toEqual({});
});

it('reports in a full snapshot the lowest offset that was ever reset', () => {
  const whole = { type: 'snapshot', isWhole: true, changedFrom: 6, offset: 0, text: 'a red cat' } as const;
  const before = toEvents(whole);
  const log = new OutputTextLog(before);
  expect(say(log, 7, 'ot')).toMatchObject({ differsFrom: 7, whole: { text: 'a red c', changedFrom: 6 } });
  // A lost worker may have left a reset.
  const reset: StoredTextEvent = { type: 'reset', index: 0, offset: 3, sequence: 0, timestampMs: 0 };
  const other = new OutputTextLog([...before, reset]);
  expect(wholesOf(other, 3, 70)).toMatchObject([{ text: expect.stringMatching(/^a r345/) as string, changedFrom: 3 }]);
});

it('skips text that is already published, up to its full length', () => {
  const log = new OutputTextLog([
    ...toEvents({ type: 'delta', offset: 0, text: 'a red cat' }),
    { type: 'reset', index: 0, offset: 6, sequence: 0, timestampMs: 0 },
    ...toEvents({ type: 'delta', offset: 6, text: 'fox' }),
  ]);
  expect(say(log, 0, 'a ')).toEqual({ isRepeated: true });
  expect(say(log, 2, 'red')).toEqual({ isRepeated: true });
  expect(say(log, 5, ' fox, ')).toEqual({});
});
