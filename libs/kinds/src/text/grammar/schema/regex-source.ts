import { GrammarProblem } from './grammar-problem.ts';

/**
 * Translates a JavaScript regular expression (ECMA 262) to the syntax of Rust's `regex` crate, in linear time and
 * without running it. Expands all classes, so that both engines match the same characters.
 */

const anyText = '(?s:.*)';
const maxNesting = 100;
const maxRepetitions = 100_000;

const spaces =
  '\\t\\n\\x{b}\\x{c}\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const words = '0-9A-Za-z_';
/** Class contents of escapes that stand for several characters. */
const classes: Readonly<Record<string, string>> = { d: '0-9', w: words, s: spaces };
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };

/** A top-level alternative, with its anchors. */
interface Way {
  readonly source: string;
  readonly atStart: boolean;
  readonly atEnd: boolean;
}

/**
 * Returns an expression that matches the full text. If the pattern is `searched` for, as JSON Schema has it, its
 * unanchored sides are open. Otherwise anchors change nothing, as in other servers.
 *
 * @throws GrammarProblem with the unsupported part and its position.
 */
export function regexSource(pattern: string, searched = false): string {
  const open = (isAnchored: boolean) => (isAnchored || !searched ? '' : anyText);
  const ways = new RegexReader(pattern).ways();
  return `(?:${ways.map(({ source, atStart, atEnd }) => open(atStart) + source + open(atEnd)).join('|')})`;
}

/** Returns the source of one character, inside or outside a class. */
function character(code: number): string {
  const letter = String.fromCodePoint(code);
  return /[\w ]/.test(letter) ? letter : `\\x{${code.toString(16)}}`;
}

class RegexReader {
  readonly #pattern: string;
  #at = 0;
  #depth = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  ways(): Way[] {
    const ways = this.#alternatives();
    if (this.#at < this.#pattern.length) throw this.#problem(')', 'has no group to close');
    return ways;
  }

  /** Reads alternatives up to the end of the expression or group. */
  #alternatives(): Way[] {
    const ways = this.#sequence();
    while (this.#take('|')) ways.push(...this.#sequence());
    return ways;
  }

  /** Reads one alternative; returns several if it is a single group with anchors inside. */
  #sequence(): Way[] {
    let atStart = false;
    let atEnd = false;
    const parts: string[] = [];
    let group: Way[] | undefined;
    while (this.#at < this.#pattern.length && !'|)'.includes(this.#next)) {
      if (atEnd) throw this.#problem('$', 'is only supported at the end', this.#at - 1);
      if (group !== undefined) throw this.#problem('^ or $', 'is not supported within a group that others follow');
      if (this.#take('^')) {
        if (parts.length > 0) throw this.#problem('^', 'is only supported at the beginning', this.#at - 1);
        atStart = true;
      } else if (this.#take('$')) atEnd = true;
      else if (this.#next === '(') {
        const ways = this.#group();
        const hasAnchors = ways.some((way) => way.atStart || way.atEnd);
        if (hasAnchors && (parts.length > 0 || atStart))
          throw this.#problem('^ or $', 'is not supported within a group');
        if (hasAnchors) group = ways;
        else parts.push(this.#repeated(`(?:${ways.map(({ source }) => source).join('|')})`));
      } else parts.push(this.#repeated(this.#atom()));
    }
    if (group !== undefined && !atEnd) return group;
    if (group !== undefined) throw this.#problem('$', 'is not supported after a group with anchors');
    return [{ source: parts.join(''), atStart, atEnd }];
  }

  #group(): Way[] {
    const from = this.#at;
    this.#at += 1;
    if (this.#take('?')) this.#groupKind(from);
    this.#depth += 1;
    if (this.#depth > maxNesting) throw this.#problem('(', `is nested more than ${maxNesting} deep`, from);
    const ways = this.#alternatives();
    this.#depth -= 1;
    if (!this.#take(')')) throw this.#problem('(', 'is not closed', from);
    return ways;
  }

  /** Reads what follows `(?`. */
  #groupKind(from: number): void {
    const kind = /(?:<?[=!]|:|<[A-Za-z_$][\w$]{0,60}>)/y;
    kind.lastIndex = this.#at;
    const [found] = kind.exec(this.#pattern) ?? [];
    const name = { '=': 'lookahead', '!': 'lookahead', '<=': 'lookbehind', '<!': 'lookbehind' }[found ?? ''];
    if (name !== undefined) throw this.#problem(`(?${found!}`, `is not supported: a ${name}`, from);
    if (found === undefined) throw this.#problem(`(?${this.#next}`, 'is not supported', from);
    this.#at += found.length;
  }

  #repeated(unit: string): string {
    const quantifier = /[*+?]|\{(\d{1,10})(,?)(\d{0,10})\}/y;
    quantifier.lastIndex = this.#at;
    const found = quantifier.exec(this.#pattern);
    if (found === null) return unit;
    const [text, min, comma, max] = found;
    for (const count of [min, max])
      if (Number(count ?? 0) > maxRepetitions) throw this.#problem(text, `repeats more than ${maxRepetitions} times`);
    if (max && Number(min) > Number(max)) throw this.#problem(text, 'has its numbers in the wrong order');
    this.#at += text.length;
    this.#take('?');
    if (/^[*+?]/.test(this.#rest(1))) throw this.#problem(this.#next, 'has nothing to repeat');
    return min === undefined ? unit + text : `${unit}{${Number(min)}${comma}${max ? Number(max) : ''}}`;
  }

  #atom(): string {
    const letter = this.#takeCharacter();
    if (letter === '[') return this.#class();
    if (letter === '.') return '[^\\n\\r\\x{2028}\\x{2029}]';
    if ('*+?'.includes(letter)) throw this.#problem(letter, 'has nothing to repeat', this.#at - 1);
    if (letter !== '\\') return character(this.#codeOf(letter));
    const escape = this.#next;
    const content = classes[escape.toLowerCase()];
    if (content !== undefined) {
      this.#at += 1;
      return escape === escape.toLowerCase() ? `[${content}]` : `[^${content}]`;
    }
    return this.#property() ?? character(this.#escape());
  }

  #class(): string {
    const from = this.#at - 1;
    const negated = this.#take('^');
    const parts: string[] = [];
    while (!this.#take(']')) {
      if (this.#at >= this.#pattern.length) throw this.#problem('[', 'is not closed', from);
      const first = this.#classPart();
      const isRange = this.#next === '-' && this.#rest(2)[1] !== ']' && this.#rest(2).length === 2;
      if (!isRange || typeof first === 'string') {
        parts.push(typeof first === 'string' ? first : character(first));
        continue;
      }
      this.#at += 1;
      const last = this.#classPart();
      if (typeof last === 'string') parts.push(character(first), '\\x{2d}', last);
      else if (last < first) throw this.#problem('a range', 'is in the wrong order');
      else parts.push(`${character(first)}-${character(last)}`);
    }
    if (parts.length === 0) return negated ? '(?s:.)' : '[^\\x{0}-\\x{10ffff}]';
    return `[${negated ? '^' : ''}${parts.join('')}]`;
  }

  /** Reads a part of a class: a code point, or the source of several characters. */
  #classPart(): number | string {
    const letter = this.#takeCharacter();
    if (letter !== '\\') return this.#codeOf(letter);
    const escape = this.#next;
    const content = classes[escape.toLowerCase()];
    if (content !== undefined) {
      this.#at += 1;
      return escape === escape.toLowerCase() ? content : `[^${content}]`;
    }
    if (this.#take('b')) return 8;
    return this.#property() ?? this.#escape();
  }

  /** Reads `p{…}` after a backslash. */
  #property(): string | undefined {
    const property = /[pP]\{([\w=]{1,60})\}/y;
    property.lastIndex = this.#at;
    const found = property.exec(this.#pattern);
    if (found === null) return undefined;
    this.#at += found[0].length;
    return `\\${found[0]}`;
  }

  /** Reads an escape after its backslash; returns the code point. */
  #escape(): number {
    const from = this.#at - 1;
    const coded = /x([\da-fA-F]{2})|u([\da-fA-F]{4})|u\{([\da-fA-F]{1,6})\}|c([a-zA-Z])/y;
    coded.lastIndex = this.#at;
    const found = coded.exec(this.#pattern);
    if (found !== null) {
      this.#at += found[0].length;
      if (found[4] !== undefined) return found[4].codePointAt(0)! % 32;
      return this.#wholeCode(Number.parseInt(found[1] ?? found[2] ?? found[3]!, 16), from);
    }
    const letter = this.#takeCharacter();
    const control = controls[letter];
    if (control !== undefined && !(letter === '0' && /^\d/.test(this.#rest(1)))) return control;
    if (/^[1-9k]/.test(letter)) throw this.#problem(`\\${letter}`, 'is not supported: a back-reference', from);
    if (/^[A-Za-z0]/.test(letter)) throw this.#problem(`\\${letter}`, 'is not supported', from);
    if (letter === '') throw this.#problem('\\', 'has nothing after it', from);
    return this.#codeOf(letter);
  }

  /** Joins a surrogate pair written as two escapes. */
  #wholeCode(code: number, from: number): number {
    const second = /\\u([dD][c-fC-F][\da-fA-F]{2})/y;
    second.lastIndex = this.#at;
    const found = code >= 0xd800 && code < 0xdc00 ? second.exec(this.#pattern) : null;
    if (found !== null) {
      this.#at += found[0].length;
      return 0x10000 + (code - 0xd800) * 0x400 + (Number.parseInt(found[1]!, 16) - 0xdc00);
    }
    if ((code >= 0xd800 && code < 0xe000) || code > 0x10ffff) throw this.#problem('\\u', 'is no character', from);
    return code;
  }

  #codeOf(letter: string): number {
    const code = letter.codePointAt(0)!;
    if (code >= 0xd800 && code < 0xe000) throw this.#problem('half of a character', 'is not supported');
    return code;
  }

  get #next(): string {
    return this.#pattern.charAt(this.#at);
  }

  #rest(length: number): string {
    return this.#pattern.slice(this.#at, this.#at + length);
  }

  #take(text: string): boolean {
    if (!this.#pattern.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #takeCharacter(): string {
    const code = this.#pattern.codePointAt(this.#at);
    if (code === undefined) return '';
    const letter = String.fromCodePoint(code);
    this.#at += letter.length;
    return letter;
  }

  #problem(what: string, problem: string, at = this.#at): GrammarProblem {
    return new GrammarProblem(`${what} ${problem}, at ${at} of the regular expression`);
  }
}
