import { valueOfKey } from '@darkroom/core';
import { GrammarProblem } from '../schema/grammar-problem.ts';
import type { LarkRules } from './lark-rules.ts';

/**
 * Translates GBNF (the EBNF of llama.cpp and xgrammar) to Lark: to one regular expression if no rule is recursive.
 * Otherwise each character becomes a lexeme: llguidance takes the longest lexeme, so longer lexemes with a common
 * prefix would hide each other.
 */

const maxNesting = 100;
const maxRepetitions = 100_000;

type Expression =
  | { readonly type: 'text'; readonly lark: string }
  | { readonly type: 'rule'; readonly name: string; readonly at: number }
  | { readonly type: 'sequence' | 'choice'; readonly parts: readonly Expression[] }
  | { readonly type: 'repeat'; readonly unit: Expression; readonly min: number; readonly max: number };

/** Adds the rules of a GBNF grammar. @returns the Lark expression of its `root`. */
export function gbnfToLark(source: string, rules: LarkRules): string {
  const read = new GbnfReader(source).rules();
  const productive = productiveRules(read);
  if (!productive.has('root')) throw new GrammarProblem('the grammar allows no text: its root never ends');
  const used = reachableRules(read, productive);
  const isRecursive = used === undefined;
  if (isRecursive) rules.isRecursive = true;
  const names = new Map([...(used ?? productive)].map((name) => [name, rules.reserve(!isRecursive)]));
  const lark = (expression: Expression): string | undefined => {
    switch (expression.type) {
      case 'text':
        return expression.lark;
      case 'rule':
        return names.get(expression.name);
      case 'repeat': {
        const unit = lark(expression.unit);
        if (unit === undefined || expression.max === 0) return expression.min === 0 ? '""' : undefined;
        return `(${unit})${quantifier(expression.min, expression.max)}`;
      }
      case 'sequence': {
        const parts = expression.parts.map(lark);
        return parts.includes(undefined) ? undefined : parts.join(' ') || '""';
      }
      case 'choice': {
        const parts = expression.parts.map(lark).filter((part) => part !== undefined);
        return parts.length === 0 ? undefined : `(${parts.join(' | ')})`;
      }
    }
  };
  for (const [name, reserved] of names) rules.define(reserved, lark(read.get(name)!)!);
  return valueOfKey(names, 'root');
}

function quantifier(min: number, max: number): string {
  if (max === Infinity) return min < 2 ? (min === 0 ? '*' : '+') : `{${min},}`;
  return min === 0 && max === 1 ? '?' : `{${min},${max}}`;
}

/** Returns the rules reachable from `root`, each after those it uses; undefined if one is recursive. */
function reachableRules(
  rules: ReadonlyMap<string, Expression>,
  productive: ReadonlySet<string>,
): ReadonlySet<string> | undefined {
  const done = new Set<string>();
  const within = new Set<string>();
  const visit = (expression: Expression): boolean => {
    if (expression.type === 'text') return true;
    if (expression.type === 'repeat') return visit(expression.unit);
    if (expression.type !== 'rule') return expression.parts.every(visit);
    const { name } = expression;
    if (done.has(name) || !productive.has(name)) return true;
    // Treat a very long chain of rules as recursive, to bound the stack.
    if (within.has(name) || within.size > 1000) return false;
    within.add(name);
    const isPlain = visit(valueOfKey(rules, name));
    within.delete(name);
    done.add(name);
    return isPlain;
  };
  return visit({ type: 'rule', name: 'root', at: 0 }) ? done : undefined;
}

/** Returns the names of rules that allow a finite text. */
function productiveRules(rules: ReadonlyMap<string, Expression>): Set<string> {
  const productive = new Set<string>();
  const users = new Map<string, Set<string>>();
  const ends = (expression: Expression): boolean => {
    if (expression.type === 'text') return true;
    if (expression.type === 'rule') return productive.has(expression.name);
    if (expression.type === 'repeat') return expression.min === 0 || ends(expression.unit);
    return expression.type === 'choice' ? expression.parts.some(ends) : expression.parts.every(ends);
  };
  const note = (user: string, expression: Expression): void => {
    if (expression.type === 'rule') users.set(expression.name, (users.get(expression.name) ?? new Set()).add(user));
    else if (expression.type === 'repeat') note(user, expression.unit);
    else if (expression.type !== 'text') for (const part of expression.parts) note(user, part);
  };
  for (const [name, expression] of rules) note(name, expression);
  // Check a rule again only when a rule that it uses has become productive.
  const open = [...rules.keys()];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (productive.has(name) || !ends(valueOfKey(rules, name))) continue;
    productive.add(name);
    open.push(...(users.get(name) ?? []));
  }
  return productive;
}

/** Returns the only part itself; otherwise an expression of all. */
function joined(type: 'sequence' | 'choice', parts: readonly Expression[]): Expression {
  const [first, ...others] = parts;
  return first !== undefined && others.length === 0 ? first : { type, parts };
}

class GbnfReader {
  readonly #source: string;
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
  }

  rules(): Map<string, Expression> {
    const rules = new Map<string, Expression>();
    const used: Extract<Expression, { type: 'rule' }>[] = [];
    this.#skip();
    while (this.#at < this.#source.length) {
      const from = this.#at;
      const name = this.#match(nameToken);
      if (name === undefined) throw this.#problem(`expected the name of a rule`);
      this.#skip();
      if (this.#match(/::=/y) === undefined) throw this.#problem(`expected ::= after "${name}"`);
      if (rules.has(name)) throw this.#problem(`there are two rules "${name}"`, from);
      rules.set(name, this.#choice(used));
    }
    for (const { name, at } of used) if (!rules.has(name)) throw this.#problem(`there is no rule "${name}"`, at);
    if (!rules.has('root')) throw new GrammarProblem('the grammar has no rule "root"');
    return rules;
  }

  #choice(used: Extract<Expression, { type: 'rule' }>[]): Expression {
    this.#depth += 1;
    if (this.#depth > maxNesting) throw this.#problem(`parentheses are nested more than ${maxNesting} deep`);
    const parts = [this.#sequence(used)];
    while (this.#match(/\|/y) !== undefined) parts.push(this.#sequence(used));
    this.#depth -= 1;
    return joined('choice', parts);
  }

  #sequence(used: Extract<Expression, { type: 'rule' }>[]): Expression {
    const parts: Expression[] = [];
    for (;;) {
      this.#skip();
      const letter = this.#source.charAt(this.#at);
      const from = this.#at;
      if (letter === '' || letter === '|' || letter === ')') break;
      if (letter === '"') parts.push(...this.#repeated(this.#text()));
      else if (letter === '[') parts.push(...this.#repeated([this.#class()]));
      else if (letter === '.') {
        this.#at += 1;
        parts.push(...this.#repeated([{ type: 'text', lark: '/(?s:.)/' }]));
      } else if (letter === '(') {
        this.#at += 1;
        const group = this.#choice(used);
        if (this.#match(/\)/y) === undefined) throw this.#problem('a parenthesis is not closed', from);
        parts.push(...this.#repeated([group]));
      } else {
        const name = this.#match(nameToken);
        if (name === undefined) throw this.#problem(`"${letter}" is not expected here`);
        this.#skip();
        // Start of the next rule.
        if (this.#source.startsWith('::=', this.#at)) {
          this.#at = from;
          break;
        }
        const rule = { type: 'rule', name, at: from } as const;
        used.push(rule);
        parts.push(...this.#repeated([rule]));
      }
    }
    return joined('sequence', parts);
  }

  /** Applies the quantifiers that follow, if any. */
  #repeated(parts: readonly Expression[], depth = 0): readonly Expression[] {
    const from = this.#at;
    this.#skip();
    const found = /[*+?]|\{\s*(\d{1,10})\s*(,?)\s*(\d{0,10})\s*\}/y;
    found.lastIndex = this.#at;
    const quantifier = found.exec(this.#source);
    if (quantifier === null) {
      this.#at = from;
      return parts;
    }
    const [text, min, comma, max] = quantifier;
    const numbers: Readonly<Record<string, [number, number]>> = { '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] };
    const range = numbers[text] ?? [Number(min), max ? Number(max) : comma ? Infinity : Number(min)];
    if (range[0] > range[1]) throw this.#problem(`${text} has its numbers in the wrong order`);
    if (range[0] > maxRepetitions || (range[1] !== Infinity && range[1] > maxRepetitions))
      throw this.#problem(`${text} repeats more than ${maxRepetitions} times`);
    if (depth > maxNesting) throw this.#problem(`more than ${maxNesting} repetitions of one another`);
    this.#at += text.length;
    const unit = joined('sequence', parts);
    return this.#repeated([{ type: 'repeat', unit, min: range[0], max: range[1] }], depth + 1);
  }

  /** Reads the characters of a quoted text. */
  #text(): Expression[] {
    const from = this.#at;
    this.#at += 1;
    const letters: Expression[] = [];
    while (this.#match(/"/y) === undefined) {
      if (this.#at >= this.#source.length || this.#source[this.#at] === '\n')
        throw this.#problem('a text is not closed', from);
      letters.push({ type: 'text', lark: `/${inRegex(this.#character())}/` });
    }
    return letters;
  }

  #class(): Expression {
    const from = this.#at;
    this.#at += 1;
    const negated = this.#match(/\^/y) !== undefined;
    const parts: string[] = [];
    while (this.#match(/\]/y) === undefined) {
      if (this.#at >= this.#source.length || this.#source[this.#at] === '\n')
        throw this.#problem('a class is not closed', from);
      const first = this.#character();
      if (this.#source[this.#at] !== '-' || this.#source[this.#at + 1] === ']') {
        parts.push(inRegex(first));
        continue;
      }
      this.#at += 1;
      const last = this.#character();
      if (last < first) throw this.#problem('a range of a class is in the wrong order', from);
      parts.push(`${inRegex(first)}-${inRegex(last)}`);
    }
    if (parts.length === 0) throw this.#problem('a class is empty', from);
    return { type: 'text', lark: `/[${negated ? '^' : ''}${parts.join('')}]/` };
  }

  /** Reads the code point of the next character, escaped or not. */
  #character(): number {
    const from = this.#at;
    const code = this.#source.codePointAt(this.#at);
    if (code === undefined) throw this.#problem('the grammar breaks off');
    this.#at += code > 0xffff ? 2 : 1;
    const found = code === 0x5c ? this.#escape(from) : code;
    if ((found >= 0xd800 && found < 0xe000) || found > 0x10ffff) throw this.#problem('half of a character', from);
    return found;
  }

  #escape(from: number): number {
    const coded = /x([\da-fA-F]{2})|u\{([\da-fA-F]{1,6})\}|u([\da-fA-F]{4})|U([\da-fA-F]{8})/y;
    coded.lastIndex = this.#at;
    const found = coded.exec(this.#source);
    if (found !== null) {
      this.#at += found[0].length;
      return Number.parseInt(found.slice(1).join(''), 16);
    }
    const letter = this.#source.codePointAt(this.#at);
    if (letter === undefined) throw this.#problem('the grammar breaks off');
    const text = String.fromCodePoint(letter);
    this.#at += text.length;
    const control = { n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11, e: 27, 0: 0 }[text];
    if (control !== undefined) return control;
    if (/^[\dA-Za-z]/.test(text)) throw this.#problem(`\\${text} is no escape`, from);
    return letter;
  }

  /** Skips spaces, line ends and comments. */
  #skip(): void {
    this.#match(/(?:\s|#[^\n]*)*/y);
  }

  #match(token: RegExp): string | undefined {
    token.lastIndex = this.#at;
    const [found] = token.exec(this.#source) ?? [];
    this.#at += found?.length ?? 0;
    return found;
  }

  #problem(problem: string, at = this.#at): GrammarProblem {
    const before = this.#source.slice(0, at);
    const line = before.split('\n').length;
    const column = at - before.lastIndexOf('\n');
    return new GrammarProblem(`EBNF: line ${line}, column ${column}: ${problem}`);
  }
}

const nameToken = /[A-Za-z_][\w.-]{0,200}/y;

function inRegex(code: number): string {
  return `\\x{${code.toString(16)}}`;
}
