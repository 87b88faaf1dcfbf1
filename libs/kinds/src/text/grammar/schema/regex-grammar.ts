/**
 * Regular expressions of JSON Schema as EBNF, of which each match is a whole string within JSON: quotes, backslashes and
 * control characters are written with their escapes.
 *
 * Known limits: no lookaround, no references back, no properties of Unicode. Of what is beyond ASCII, a class has all or at
 * most some hundreds: xgrammar tells such characters apart only if they are named one by one. So "." has U+2028 and U+2029 too.
 */
import { type CharRange, classOfEscape, controlOfEscape, inverted } from './regex-classes.ts';
import { characters, choice, type GrammarRules, literal, sequence } from './grammar-rules.ts';

/** Characters beyond ASCII that are named one by one at most. */
const maxNamed = 512;

/** What of an expression cannot be done. */
export class RegexError extends Error {}

/**
 * @param source a pattern, as a whole: as if it began with "^" and ended with "$".
 * @throws RegexError naming what is not supported, and where.
 */
export function regexGrammar(rules: GrammarRules, source: string): string {
  try {
    // oxlint-disable-next-line no-new -- only whether it can be made
    new RegExp(source, 'u');
  } catch (error) {
    throw new RegexError((error as Error).message);
  }
  return new RegexReader(rules, source).whole();
}

class RegexReader {
  readonly #rules: GrammarRules;
  readonly #source: readonly string[];
  #at = 0;

  constructor(rules: GrammarRules, source: string) {
    this.#rules = rules;
    this.#source = Array.from(source);
  }

  whole(): string {
    return this.#choice(true);
  }

  /** @param isWhole it is no group's, so its ways may have the anchors that they are taken to have. */
  #choice(isWhole: boolean): string {
    const ways: string[] = [];
    do {
      if (isWhole) this.#skip('^');
      ways.push(this.#sequence(isWhole));
    } while (this.#skip('|'));
    return choice(ways);
  }

  #sequence(isWhole: boolean): string {
    const terms: string[] = [];
    for (let next = this.#peek(); next !== undefined && next !== '|' && next !== ')'; next = this.#peek()) {
      const after = this.#source[this.#at + 1];
      if (isWhole && next === '$' && (after === undefined || after === '|')) this.#at += 1;
      else terms.push(this.#term());
    }
    return sequence(terms);
  }

  #term(): string {
    const atom = this.#atom();
    const next = this.#peek();
    if (next === '*' || next === '+' || next === '?') {
      this.#at += 1;
      this.#skip('?');
      return next === '?' ? `(${atom})?` : this.#rules.repeat(atom, next === '*' ? 0 : 1, Infinity);
    }
    const range =
      next === '{' ? /^\{(\d+)(,?)(\d*)\}/u.exec(this.#source.slice(this.#at, this.#at + 32).join('')) : null;
    if (range === null) return atom;
    this.#at += range[0].length;
    this.#skip('?');
    const least = Number(range[1]);
    return this.#rules.repeat(atom, least, range[2] === '' ? least : range[3] === '' ? Infinity : Number(range[3]));
  }

  #atom(): string {
    const at = this.#at;
    const letter = this.#take();
    switch (letter) {
      case '(':
        return this.#group(at);
      case '[':
        return this.#characters(this.#class());
      case '.':
        return this.#characters(inverted(['\n', '\r'].map((letter) => rangeOf(letter))));
      case '\\':
        return this.#characters(this.#escape(at));
      case '^':
      case '$':
        throw new RegexError(`${letter} is not supported at ${at}: the whole text is matched`);
      default:
        return this.#characters([rangeOf(letter)]);
    }
  }

  #group(at: number): string {
    if (this.#skip('?')) {
      const isNamed = this.#peek() === '<' && !['=', '!'].includes(this.#source[this.#at + 1] ?? '');
      if (isNamed) this.#at = this.#source.indexOf('>', this.#at) + 1;
      else if (!this.#skip(':'))
        throw new RegexError(`(?${this.#peek()} is not supported at ${at}: lookaround and flags are not`);
    }
    const content = this.#choice(false);
    this.#take();
    return `(${content})`;
  }

  #class(): readonly CharRange[] {
    const isInverted = this.#skip('^');
    const ranges: CharRange[] = [];
    while (!this.#skip(']')) {
      const first = this.#classPart();
      const last =
        this.#peek() === '-' && this.#source[this.#at + 1] !== ']' && first.length === 1 ? this.#rangeEnd() : undefined;
      if (last === undefined) ranges.push(...first);
      else ranges.push([first[0]![0], last]);
    }
    return isInverted ? inverted(ranges) : ranges;
  }

  #rangeEnd(): number {
    this.#at += 1;
    return this.#classPart()[0]![1];
  }

  #classPart(): readonly CharRange[] {
    const at = this.#at;
    const letter = this.#take();
    if (letter !== '\\') return [rangeOf(letter)];
    if (this.#skip('b')) return [[8, 8]];
    return this.#escape(at);
  }

  #escape(at: number): readonly CharRange[] {
    const letter = this.#take();
    const named = classOfEscape(letter) ?? controlOfEscape(letter);
    if (named !== undefined) return named;
    if (letter === 'x') return [hexRange(this.#takeMany(2))];
    if (letter === 'u' && this.#skip('{')) return [hexRange(this.#takeUntil('}'))];
    if (letter === 'u') return [hexRange(this.#takeMany(4))];
    if (/[a-z\d]/iu.test(letter)) throw new RegexError(`\\${letter} is not supported at ${at}`);
    return [rangeOf(letter)];
  }

  /** One of some characters, as JSON writes them within a string. */
  #characters(ranges: readonly CharRange[]): string {
    const plain = intersect(ranges, [
      [0x20, 0x21],
      [0x23, 0x5b],
      [0x5d, 0x7f],
    ]);
    const ways = plain.length > 0 ? [characters(plain)] : [];
    for (const code of [...Array(0x20).keys(), 0x22, 0x5c])
      if (ranges.some(([from, to]) => from <= code && code <= to))
        ways.push(literal(JSON.stringify(String.fromCodePoint(code)).slice(1, -1)));
    ways.push(
      ...this.#beyondAscii(
        intersect(ranges, [
          [0x80, 0xd7ff],
          [0xe000, 0x10ffff],
        ]),
      ),
    );
    if (ways.length === 0) throw new RegexError('a class has no characters');
    return choice(ways);
  }

  #beyondAscii(ranges: readonly CharRange[]): string[] {
    const count = ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
    if (count > 0x10ffff - 0x80 - 0x800 - 64) return ['[^\\U00000000-\\U0000007f]'];
    if (count > maxNamed)
      throw new RegexError(
        `a class has ${count} characters beyond ASCII, expected at most ${maxNamed}, or all of them`,
      );
    const codes = new Set(ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at)));
    return [...codes].map((code) => literal(String.fromCodePoint(code)));
  }

  #peek(): string | undefined {
    return this.#source[this.#at];
  }

  #take(): string {
    return this.#source[this.#at++]!;
  }

  #takeMany(count: number): string {
    this.#at += count;
    return this.#source.slice(this.#at - count, this.#at).join('');
  }

  #takeUntil(end: string): string {
    const taken = this.#takeMany(this.#source.indexOf(end, this.#at) - this.#at);
    this.#at += 1;
    return taken;
  }

  #skip(letter: string): boolean {
    if (this.#peek() !== letter) return false;
    this.#at += 1;
    return true;
  }
}

function rangeOf(letter: string): CharRange {
  const code = letter.codePointAt(0)!;
  return [code, code];
}

function hexRange(digits: string): CharRange {
  const code = Number.parseInt(digits, 16);
  return [code, code];
}

function intersect(ranges: readonly CharRange[], others: readonly CharRange[]): CharRange[] {
  return ranges.flatMap(([from, to]) =>
    others.flatMap(([low, high]) =>
      from <= high && low <= to ? [[Math.max(from, low), Math.min(to, high)] as const] : [],
    ),
  );
}
