import { textAfter, type TextEvent, type TextPiece } from '@darkroom/core';
import { expect, it } from 'vitest';
import { OutputTextLog, type SaidPiece, type TextNotes } from './output-text.ts';

const idsUpTo = (count: number): string => Array.from({ length: count }, (_, at) => `${at},`).join('');
const digits = '0123456789'.repeat(100);

function say(log: OutputTextLog, offset: number, text: string): TextNotes {
  return log.add({ type: 'delta', offset, text });
}

/** A digit at its place. */
function digit(at: number): SaidPiece {
  return { type: 'delta', offset: at, text: String(at % 10), done: at + 1, facts: { ids: `${at},` } };
}

/** What is said again while so many digits are said. */
function wholesOf(log: OutputTextLog, from: number, count: number): TextPiece[] {
  return Array.from({ length: count }, (_, at) => log.add(digit(from + at)).whole ?? []).flat();
}

function said(...pieces: SaidPiece[]): TextEvent[] {
  return pieces.map((piece) => ({ ...piece, index: 0, sequence: 0, timestampMs: 0 }));
}

function wholeOf(count: number): TextPiece {
  return { offset: 0, text: digits.slice(0, count), done: count, facts: { ids: idsUpTo(count) } };
}

it('says everything again after so many pieces, with all that was said of it, and the more rarely the longer it is', () => {
  expect(wholesOf(new OutputTextLog(), 0, 1000)).toEqual(
    [64, 128, 192, 256, 320, 384, 448, 512, 585, 668, 763, 872, 996].map(wholeOf),
  );
});

it('says everything again, though an earlier delivery said the beginning', () => {
  const before = said(...Array.from({ length: 40 }, (_, at) => digit(at)));
  expect(wholesOf(new OutputTextLog(before), 40, 30)).toEqual([wholeOf(64)]);
  // From a checkpoint that is older than what stands: nothing counts twice.
  expect(wholesOf(new OutputTextLog(before), 20, 50)).toEqual([wholeOf(64)]);
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
      wholes.push(log.add(piece).whole ?? []);
      text = textAfter(text, said(piece)[0]!);
    }
  expect(text).toBe('x'.repeat(30));
  // Of the 66th piece, the third of its block, nothing is said before the next block has begun.
  expect(wholes.flat()).toEqual([
    { offset: 0, text: 'x'.repeat(22), done: 22, facts: { ids: idsUpTo(22), calls: 66, settled: 1 } },
  ]);
});

/** A call that makes one token of a block of two known; the second call settles it. */
function blockCall(block: number, call: number): SaidPiece {
  const settled = call === 2 ? { settled: 1 } : {};
  const text = call === 2 ? 'xy' : 'x░';
  const facts = { ids: `${2 * block},${2 * block + 1},`, calls: 2 * block + call, ...settled };
  return { type: 'snapshot', offset: 2 * block, text, done: 2 * block + call, facts };
}

it('a rerun of blocks takes nothing back, and loses none of what was said of them', () => {
  const calls = Array.from({ length: 32 }, (_, block) => [blockCall(block, 1), blockCall(block, 2)]).flat();
  const log = new OutputTextLog(said(...calls));
  // It goes on at the third block.
  expect(calls.slice(4).map((call) => log.add(call))).toEqual(calls.slice(4).map(() => ({ isRepeated: true })));
  expect(log.add(blockCall(32, 1)).whole).toEqual({
    offset: 0,
    text: 'xy'.repeat(32),
    done: 64,
    facts: { ids: idsUpTo(64), calls: 64, settled: 1 },
  });
});

it('a rerun of a block that comes out differently is said', () => {
  const log = new OutputTextLog(said(blockCall(0, 2), blockCall(1, 2)));
  expect(log.add(blockCall(0, 1))).toEqual({ isRepeated: true });
  expect(log.add({ ...blockCall(0, 2), text: 'xz' })).toEqual({});
  expect(log.add(blockCall(1, 2))).toEqual({});
});

it('tokens that are no text yet are said once', () => {
  const half: SaidPiece = { type: 'delta', offset: 2, text: '', done: 3, facts: { ids: '7,' } };
  const log = new OutputTextLog(said({ type: 'delta', offset: 0, text: 'ab', done: 2, facts: { ids: '5,6,' } }, half));
  expect(log.add(half)).toEqual({ isRepeated: true });
  expect(log.add({ ...half, done: 4 })).toEqual({});
});

it('a piece that begins before the end takes the place of what stood there', () => {
  const log = new OutputTextLog();
  say(log, 0, 'a red ');
  say(log, 6, 'apple');
  log.add({ type: 'snapshot', offset: 6, text: 'fox' });
  let notes: TextNotes = {};
  for (let piece = 0; piece < 62; piece++) notes = say(log, 9 + piece, '!');
  expect(notes.whole).toEqual({ offset: 0, text: `a red fox${'!'.repeat(61)}` });
});

it('never says that it knows everything when something was lost', () => {
  const log = new OutputTextLog(said({ type: 'delta', offset: 0, text: '01' }));
  expect(wholesOf(log, 5, 200)).toEqual([]);
  expect(log.endedAs('0')).toEqual({});
});

it('says from where on a rerun differs, and where it ends', () => {
  const log = new OutputTextLog(said({ type: 'delta', offset: 0, text: 'a red fox' }));
  expect(say(log, 0, 'a red')).toEqual({ isRepeated: true });
  expect(log.endedAs('a red')).toEqual({ differsFrom: 5, whole: { offset: 0, text: 'a red', changedFrom: 5 } });
  expect(say(log, 5, ' cat')).toEqual({ differsFrom: 5, whole: { offset: 0, text: 'a red', changedFrom: 5 } });
  expect(say(log, 9, ' on it')).toEqual({});
  expect(log.endedAs('a red cat on it')).toEqual({});
  // What is worked on in place says by itself that it does.
  expect(log.add({ type: 'snapshot', offset: 6, text: 'o_l' })).toEqual({});
  expect(log.endedAs('a red o_l')).toEqual({});
});

it('says that nothing stands where a rerun has written nothing', () => {
  const log = new OutputTextLog(said({ type: 'delta', offset: 0, text: 'a red fox' }));
  expect(log.endedAs('')).toEqual({ differsFrom: 0, whole: { offset: 0, text: '', changedFrom: 0 } });
  // One that goes on from the end of what stands has nothing to say either.
  expect(log.endedAs('a red fox')).toEqual({});
});

it('says with all that stands from where on something was taken back at any time', () => {
  const whole = { type: 'snapshot', isWhole: true, changedFrom: 6, offset: 0, text: 'a red cat' } as const;
  const before = said(whole);
  const log = new OutputTextLog(before);
  expect(say(log, 7, 'ot')).toMatchObject({ differsFrom: 7, whole: { text: 'a red c', changedFrom: 6 } });
  // A worker that was lost may have left a reset behind.
  const reset: TextEvent = { type: 'reset', index: 0, offset: 3, sequence: 0, timestampMs: 0 };
  const other = new OutputTextLog([...before, reset]);
  expect(wholesOf(other, 3, 70)).toMatchObject([{ text: expect.stringMatching(/^a r345/) as string, changedFrom: 3 }]);
});

it('takes what stands already as it is, and no less of it', () => {
  const log = new OutputTextLog([
    ...said({ type: 'delta', offset: 0, text: 'a red cat' }),
    { type: 'reset', index: 0, offset: 6, sequence: 0, timestampMs: 0 },
    ...said({ type: 'delta', offset: 6, text: 'fox' }),
  ]);
  expect(say(log, 0, 'a ')).toEqual({ isRepeated: true });
  expect(say(log, 2, 'red')).toEqual({ isRepeated: true });
  expect(say(log, 5, ' fox, ')).toEqual({});
});
