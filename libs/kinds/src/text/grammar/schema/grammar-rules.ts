/** EBNF as xgrammar reads it, while it is written: expressions are strings, and rules give them names. */

/** Units that stand in one rule; longer repetitions are rules of rules, so that a thousand costs little more than ten. */
const unitsPerRule = 16;

export class GrammarRules {
  readonly #rules = new Map<string, string>();
  /** Rules that say the same are one: what the matcher prepares for a rule is large. */
  readonly #nameOf = new Map<string, string>();

  /** A rule for an expression. @returns its name. */
  rule(expression: string): string {
    const known = this.#nameOf.get(expression);
    if (known !== undefined) return known;
    const name = this.reserve();
    this.#nameOf.set(expression, name);
    this.define(name, expression);
    return name;
  }

  /** A rule that stands in its own expression, made when it is first asked for by this key. */
  once(key: string, expressionOf: (name: string) => string): string {
    const known = this.#nameOf.get(`"${key}`);
    if (known !== undefined) return known;
    const name = this.reserve();
    this.#nameOf.set(`"${key}`, name);
    this.define(name, expressionOf(name));
    return name;
  }

  /** The name of a rule that is written later: it may stand in its own expression. */
  reserve(): string {
    const name = `r${this.#rules.size}`;
    this.#rules.set(name, '""');
    return name;
  }

  define(name: string, expression: string): void {
    this.#rules.set(name, expression);
  }

  /** Something `least` to `most` times, one after the other. */
  repeat(unit: string, least: number, most: number): string {
    // A class in a rule of its own would be left at each of its characters.
    const item = unit.startsWith('[') && !unit.includes(' ') ? unit : this.rule(unit);
    const more = most === Infinity ? `${item}*` : this.#upTo(item, most - least);
    return sequence([this.#exactly(item, least), more]);
  }

  /** The whole grammar; it begins with the expression. */
  textFrom(expression: string): string {
    const rules = [...this.#rules].map(([name, body]) => `${name} ::= ${body}\n`);
    return `root ::= ${expression}\n${rules.join('')}`;
  }

  #exactly(item: string, count: number): string {
    if (count <= unitsPerRule) return count === 0 ? '""' : sequence(Array.from({ length: count }, () => item));
    const block = this.rule(this.#exactly(item, unitsPerRule));
    const whole = this.#exactly(block, Math.floor(count / unitsPerRule));
    return sequence([whole, this.#exactly(item, count % unitsPerRule)]);
  }

  #upTo(item: string, count: number): string {
    if (count === 0) return '""';
    if (count <= unitsPerRule) return `${item}{0,${count}}`;
    const block = this.rule(this.#exactly(item, unitsPerRule));
    const whole = Math.floor(count / unitsPerRule);
    const less = sequence([this.#upTo(block, whole - 1), this.#upTo(item, unitsPerRule - 1)]);
    const all = sequence([this.#exactly(block, whole), this.#upTo(item, count % unitsPerRule)]);
    return choice([less, all]);
  }
}

/** A text as it stands. */
export function literal(text: string): string {
  return text === '' ? '""' : `"${Array.from(text, (letter) => escaped(letter, '"')).join('')}"`;
}

/** One character of some; ranges of code points, both ends among them. */
export function characters(ranges: readonly (readonly [from: number, to: number])[]): string {
  const parts = ranges.map(([from, to]) => (from === to ? inClass(from) : `${inClass(from)}-${inClass(to)}`));
  return `[${parts.join('')}]`;
}

export function sequence(expressions: readonly string[]): string {
  return expressions.filter((expression) => expression !== '""').join(' ') || '""';
}

export function choice(expressions: readonly string[]): string {
  return expressions.length === 1 ? expressions[0]! : `(${expressions.join(' | ')})`;
}

function inClass(code: number): string {
  return escaped(String.fromCodePoint(code), ']');
}

function escaped(letter: string, end: string): string {
  if (/[\w ]/u.test(letter) || (end === '"' && /[!#-[\]-~]/u.test(letter))) return letter;
  return `\\U${letter.codePointAt(0)!.toString(16).padStart(8, '0')}`;
}
