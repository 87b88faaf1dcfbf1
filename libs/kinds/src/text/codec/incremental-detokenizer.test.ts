import { describe, expect, it } from 'vitest';
import { IncrementalDetokenizer } from './incremental-detokenizer.ts';
import { StopMatcher } from './stop-matcher.ts';

/** Each id is a byte; 0 is a special token. */
const bytes = { bytesOf: (id: number) => Uint8Array.of(id), isSpecial: (id: number) => id === 0 };
const idsOf = (text: string) => [...new TextEncoder().encode(text)];

function piecesOf(ids: readonly number[], stops: readonly string[] = []) {
  const detokenizer = new IncrementalDetokenizer(bytes, stops);
  return { pieces: ids.map((id) => detokenizer.push(id)), end: detokenizer.end() };
}

function sent(text: string, stops: readonly string[]) {
  const { pieces, end } = piecesOf(idsOf(text), stops);
  const at = pieces.findIndex(({ stop }) => stop !== undefined);
  const emitted = at === -1 ? pieces : pieces.slice(0, at + 1);
  return { text: emitted.map((piece) => piece.text).join('') + (at === -1 ? end : ''), stop: pieces[at]?.stop };
}

describe('the incremental detokenizer', () => {
  it('emits complete characters only', () => {
    const { pieces, end } = piecesOf(idsOf('aé漢🐈b'));
    const texts = pieces.map(({ text }) => text);
    expect(texts).toEqual(['a', '', 'é', '', '', '漢', '', '', '', '🐈', 'b']);
    expect(end).toBe('');
  });

  it('yields the same text as decoding all bytes at once, for any bytes', () => {
    let seed = 7;
    const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    const leads = [0x41, 0x80, 0xbf, 0xc1, 0xc3, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xf5, 0x9f, 0xa0, 0x90];
    for (let round = 0; round < 2000; round++) {
      const ids = Array.from(
        { length: 1 + Math.floor(random() * 8) },
        () => leads[Math.floor(random() * leads.length)]!,
      );
      // Ends with a complete character, so that nothing is left out.
      ids.push(0x2e);
      const { pieces } = piecesOf(ids);
      const whole = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(ids));
      expect(pieces.map(({ text }) => text).join('')).toBe(whole);
    }
  });

  it('drops a character that is never completed', () => {
    const { pieces, end } = piecesOf(idsOf('a🐈').slice(0, -1));
    expect(pieces.map(({ text }) => text).join('') + end).toBe('a');
  });

  it('emits nothing for special tokens, also within a character', () => {
    const [first, ...rest] = idsOf('é');
    const { pieces } = piecesOf([97, 0, first!, 0, ...rest]);
    expect(pieces.map(({ text }) => text)).toEqual(['a', '', '', '', 'é']);
  });

  it('accepts placeholder text for an unknown token and drops an incomplete character before it', () => {
    const detokenizer = new IncrementalDetokenizer(bytes, ['░b']);
    for (const id of idsOf('🐈').slice(0, -1)) detokenizer.push(id);
    expect(detokenizer.pushText('░')).toEqual({ text: '', units: 1 });
    expect(detokenizer.push(97)).toEqual({ text: '░a', units: 1 });
  });

  it('replaces bytes at once that no further byte can complete', () => {
    for (const [lead, second] of [
      [0xe0, 0x80],
      [0xed, 0xa0],
      [0xf0, 0x80],
      [0xf4, 0x90],
    ])
      expect(piecesOf([lead!, second!]).pieces.map(({ text }) => text)).toEqual(['', '\uFFFD\uFFFD']);
  });

  it('clones a partly matched stop string', () => {
    const detokenizer = new IncrementalDetokenizer(bytes, ['END']);
    for (const id of idsOf('aEN')) detokenizer.push(id);
    for (const each of [detokenizer.clone(), detokenizer.clone(), detokenizer])
      expect(each.push(68)).toEqual({ text: '', stop: 'END', units: 1 });
    const other = new IncrementalDetokenizer(bytes, ['END']);
    for (const id of idsOf('aEN')) other.push(id);
    expect(other.clone().end()).toBe('EN');
  });

  it('clones an incomplete character', () => {
    const detokenizer = new IncrementalDetokenizer(bytes, ['🐈b']);
    for (const id of idsOf('a🐈').slice(0, -1)) detokenizer.push(id);
    const other = detokenizer.clone();
    const last = idsOf('🐈').at(-1)!;
    for (const each of [detokenizer, other]) {
      expect(each.push(last)).toEqual({ text: '', units: 2 });
      expect(each.push(98)).toEqual({ text: '', stop: '🐈b', units: 1 });
    }
  });
});

describe('a stop string', () => {
  it.each([
    ['a cat on blue', [' on'], 'a cat', ' on'],
    ['aaab', ['aab'], 'a', 'aab'],
    ['one\n\ntwo', ['\n\n', '\n'], 'one', '\n'],
    ['the end', ['nd', 'end'], 'the ', 'end'],
    ['the end', ['x', 'ending'], 'the end', undefined],
    ['a 🐈 b', ['🐈'], 'a ', '🐈'],
    ['a 🐉 b', ['🐈'], 'a 🐉 b', undefined],
    ['stop', ['stop'], '', 'stop'],
  ])('ends %j with %j', (text, stops, before, stop) => {
    expect(sent(text, stops)).toEqual({ text: before, stop });
  });

  it('is never emitted in part', () => {
    const matcher = new StopMatcher(['END OF TEXT']);
    const pieces = ['a E', 'ND', ' O', 'F T', 'EA', ' END OF', ' TEXT!'].map((piece) => matcher.push(piece));
    expect(pieces).toEqual([
      { text: 'a ' },
      { text: '' },
      { text: '' },
      { text: '' },
      { text: 'END OF TEA' },
      { text: ' ' },
      { text: '', stop: 'END OF TEXT' },
    ]);
  });

  it('of 10,000 characters is matched in linear time', () => {
    const stop = `${'ab'.repeat(5000)}c`;
    const matcher = new StopMatcher([stop]);
    const startedAtMs = performance.now();
    const text = 'ab'.repeat(100_000);
    let emitted = '';
    for (let at = 0; at < text.length; at += 4) emitted += matcher.push(text.slice(at, at + 4)).text;
    expect(emitted + matcher.end()).toBe(text);
    // A search from the start with each chunk would take minutes.
    expect(performance.now() - startedAtMs).toBeLessThan(20_000);
  });
});
