import { describe, expect, it } from 'vitest';
import type { CallMarkup } from './call-markup.ts';
import { type CallPiece, CallReader, readCalls } from './call-reader.ts';

const hermes: CallMarkup = {
  open: '',
  begin: '<tool_call>\n{"name": "',
  middle: '", "arguments": ',
  end: '}\n</tool_call>',
  separator: '\n',
  close: '',
};
const llama: CallMarkup = { open: '', begin: '{"name": "', middle: '", "parameters": ', end: '}', close: '' };
const list: CallMarkup = {
  open: '[CALLS] [',
  begin: '{"name": "',
  middle: '", "arguments": ',
  end: '}',
  separator: ', ',
  close: ']',
};

const call = (name: string, json: string, { begin, middle, end } = hermes) => `${begin}${name}${middle}${json}${end}`;
const nested = String.raw`{"a": [{"b": "}]{\"\\"}], "c": "</tool_call>"}`;

const texts: Record<string, [CallMarkup, string, { text: string; calls: object[] }]> = {
  'text alone': [hermes, 'a birthday cake \n', { text: 'a birthday cake \n', calls: [] }],
  'a call alone': [hermes, call('draw', '{}'), { text: '', calls: [{ name: 'draw', arguments: '{}' }] }],
  'text, and a call after it': [
    hermes,
    `Let me see.\n\n${call('draw', nested)}`,
    { text: 'Let me see.', calls: [{ name: 'draw', arguments: nested }] },
  ],
  'several calls, and text around them': [
    hermes,
    `\none ${call('a', '{"x": 1}')}\n\n${call('b', '{}')} two\n${call('c', '{}')}\n`,
    {
      text: '\none\ntwo',
      calls: [
        { name: 'a', arguments: '{"x": 1}' },
        { name: 'b', arguments: '{}' },
        { name: 'c', arguments: '{}' },
      ],
    },
  ],
  'a false start of a call': [hermes, 'a <tool_cat> <tool_', { text: 'a <tool_cat> <tool_', calls: [] }],
  'a false start up to the name': [
    hermes,
    `a \n${hermes.begin}no name", ${call('b', '{}')}`,
    { text: `a \n${hermes.begin}no name",`, calls: [{ name: 'b', arguments: '{}' }] },
  ],
  'a false start up to the arguments': [
    hermes,
    `${hermes.begin}draw${hermes.middle}7}`,
    { text: `${hermes.begin}draw${hermes.middle}7}`, calls: [] },
  ],
  'a name that is too long': [hermes, call('n'.repeat(65), '{}'), { text: call('n'.repeat(65), '{}'), calls: [] }],
  'a call that was cut in its start marker': [hermes, 'a\n<tool_call>\n{"na', { text: 'a', calls: [] }],
  'a call that was cut in its name': [hermes, `a\n${hermes.begin}dra`, { text: 'a', calls: [] }],
  'a call that was cut in its arguments': [
    hermes,
    `a\n${hermes.begin}draw${hermes.middle}{"a": "b`,
    { text: 'a', calls: [{ name: 'draw', arguments: '{"a": "b' }] },
  ],
  'a call that was cut in its end marker': [
    hermes,
    call('draw', '{}').slice(0, -3),
    { text: '', calls: [{ name: 'draw', arguments: '{}' }] },
  ],
  'a call without markers': [
    llama,
    call('draw', '{"a": 1}', llama),
    { text: '', calls: [{ name: 'draw', arguments: '{"a": 1}' }] },
  ],
  'JSON that is not a call': [llama, '{"names": 1}', { text: '{"names": 1}', calls: [] }],
  'a list of calls': [
    list,
    `See: [CALLS] [${call('a', '{}', list)}, ${call('b', '{}', list)}] done`,
    {
      text: 'See:\ndone',
      calls: [
        { name: 'a', arguments: '{}' },
        { name: 'b', arguments: '{}' },
      ],
    },
  ],
};

/** Joins consecutive parts of the same type. */
function joined(pieces: readonly CallPiece[]): CallPiece[] {
  const all: CallPiece[] = [];
  for (const piece of pieces) {
    const last = all.at(-1);
    if (last !== undefined && 'text' in last && 'text' in piece && last.type === piece.type)
      all.splice(-1, 1, { ...last, text: last.text + piece.text });
    else all.push(piece);
  }
  return all;
}

function piecesOf(markup: CallMarkup, parts: readonly string[]): CallPiece[] {
  const reader = new CallReader(markup);
  return [...parts.flatMap((part) => reader.push(part)), ...reader.end()];
}

describe.each(Object.entries(texts))('%s', (_name, [markup, text, expected]) => {
  it('is separated into text and calls', () => expect(readCalls(markup, text)).toEqual(expected));

  it('gives the same result however the text is chunked', () => {
    const whole = joined(piecesOf(markup, [text]));
    expect(joined(piecesOf(markup, text.split('')))).toEqual(whole);
    for (let at = 0; at <= text.length; at++)
      expect(joined(piecesOf(markup, [text.slice(0, at), text.slice(at)]))).toEqual(whole);
  });

  it('never retracts emitted parts', () => {
    const whole = joined(piecesOf(markup, [text]));
    for (let at = 0; at < text.length; at++) {
      const emitted = joined(new CallReader(markup).push(text.slice(0, at)));
      const later = whole.slice(0, emitted.length).map((piece, place) => cutTo(emitted[place]!, piece));
      expect(later).toEqual(emitted);
    }
  });
});

/** Cuts a part to the length of the other. */
function cutTo(other: CallPiece, piece: CallPiece): CallPiece {
  return 'text' in piece && 'text' in other ? { ...piece, text: piece.text.slice(0, other.text.length) } : piece;
}

it('emits arguments as they arrive, and an event when they are complete', () => {
  const reader = new CallReader(hermes);
  expect(reader.push('Hm.\n<tool_call>\n{"na')).toEqual([{ type: 'text', text: 'Hm.' }]);
  expect(reader.push('me": "dr')).toEqual([]);
  expect(reader.push('aw", "arguments": {"a')).toEqual([
    { type: 'call', call: 0, name: 'draw' },
    { type: 'arguments', call: 0, text: '{"a' },
  ]);
  expect(reader.push('": 1}}\n</tool')).toEqual([
    { type: 'arguments', call: 0, text: '": 1}' },
    { type: 'called', call: 0 },
  ]);
  expect(reader.push('_call>')).toEqual([]);
  expect(reader.end()).toEqual([]);
  expect(reader.calls).toBe(1);
});
