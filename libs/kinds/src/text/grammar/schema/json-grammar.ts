import { characters, choice, type GrammarRules, literal, sequence } from './grammar-rules.ts';

/**
 * JSON on one line, with ", " and ": ". Numbers have no more digits than a double keeps apart from its neighbours, so that a
 * model cannot write zeros without an end; `\u` stands for no half of a character.
 */
export const json = {
  boolean: '("true" | "false")',
  null: '"null"',
  integer: '"-"? ("0" | [1-9] [0-9]{0,14})',
  number: '"-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,15})? ([eE] [+\\U0000002d]? [0-9]{1,2})?',
} as const;

const quote = '"\\U00000022"';
const plain = '[^"\\\\\\U00000000-\\U0000001f]';
const escape = '([\\U00000022\\U0000005c/bfnrt] | "u" ([0-9A-CE-Fa-ce-f] [0-9A-Fa-f]{3} | [Dd] [0-7] [0-9A-Fa-f]{2}))';

/** A character of a string, and then the rest. */
function before(rules: GrammarRules, rest: string): string {
  return `(${plain} ${rest} | "\\\\" ${rules.rule(escape)} ${rest})`;
}

/** A rule for any string. */
export function stringRule(rules: GrammarRules): string {
  return rules.rule(sequence([quote, restRule(rules)]));
}

/** Any characters, and the quote after them. */
function restRule(rules: GrammarRules): string {
  return rules.once('rest', (rest) => choice([quote, before(rules, rest)]));
}

/** Characters of a long string that are counted one by one. */
const blockLength = 32;

/**
 * A rule for strings of so many characters.
 *
 * Each character is a rule that ends with the next: what a token does within such a chain is known once and for all, and
 * where it leaves it has to be found out for each text. Each link costs some 10 ms, so long strings have blocks of links.
 */
export function countedStringRule(rules: GrammarRules, least: number, most: number): string {
  const link = (rest: string) => rules.rule(before(rules, rest));
  const chain = (count: number, end: string): string => (count === 0 ? end : link(chain(count - 1, end)));
  const upTo = (count: number): string =>
    count === 0 ? quote : rules.rule(choice([quote, before(rules, upTo(count - 1))]));
  const block = () => rules.rule(chain(blockLength, '""'));
  const some = (count: number, rest: string): string => {
    if (count <= 2 * blockLength) return chain(count, rest);
    const whole = Math.floor(count / blockLength);
    return rules.rule(sequence([rules.repeat(block(), whole, whole), chain(count % blockLength, rest)]));
  };
  const atMost = (count: number): string => {
    if (count <= 2 * blockLength) return upTo(count);
    const whole = Math.floor(count / blockLength);
    const less = sequence([rules.repeat(block(), 0, whole - 1), upTo(blockLength - 1)]);
    const all = sequence([rules.repeat(block(), whole, whole), upTo(count % blockLength)]);
    return rules.rule(choice([less, all]));
  };
  const rest = most === Infinity ? restRule(rules) : atMost(most - least);
  return rules.rule(sequence([quote, some(least, rest)]));
}

export interface ListOptions {
  open: string;
  close: string;
  least: number;
  most: number;
}

/** So many of the same, with commas between them. */
export function listOf(rules: GrammarRules, item: string, { open, close, least, most }: ListOptions): string {
  if (most === 0) return literal(`${open}${close}`);
  const next = sequence(['", "', item]);
  const some = sequence([item, rules.repeat(next, Math.max(least - 1, 0), most - 1)]);
  return sequence([literal(open), least === 0 ? `(${some})?` : some, literal(close)]);
}

/** A rule for any JSON. */
export function anyRule(rules: GrammarRules): string {
  return rules.once('any', (any) => {
    const member = rules.rule(sequence([stringRule(rules), '": "', any]));
    const all = { least: 0, most: Infinity };
    return choice([
      stringRule(rules),
      rules.rule(json.number),
      json.boolean,
      json.null,
      rules.rule(listOf(rules, any, { open: '[', close: ']', ...all })),
      rules.rule(listOf(rules, member, { open: '{', close: '}', ...all })),
    ]);
  });
}

/** One value, as JSON on one line. */
export function jsonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${jsonText(one)}`);
  return `{${members.join(', ')}}`;
}

/**
 * The name of a property that is none of these. It is written without escapes, and so none that needs them: a
 * name could be hidden in them.
 */
export function otherNameRule(rules: GrammarRules, names: readonly string[]): string {
  const rest = rules.once('name', (name) => choice([quote, `${plain} ${name}`]));
  const plainNames = names.filter((name) => JSON.stringify(name) === `"${name}"`);
  const after = (ends: readonly string[]): string => {
    const ways: string[] = ends.includes('') ? [] : [quote];
    const byFirst = new Map<string, string[]>();
    for (const name of ends) {
      const [first] = name;
      if (first !== undefined) byFirst.set(first, [...(byFirst.get(first) ?? []), name.slice(first.length)]);
    }
    for (const [first, others] of byFirst) ways.push(sequence([literal(first), rules.rule(after(others))]));
    const taken = [...byFirst.keys()].map((letter) => letter.codePointAt(0)!);
    ways.push(sequence([otherCharacters(taken), rest]));
    return choice(ways);
  };
  return rules.rule(sequence([quote, rules.rule(after(plainNames))]));
}

/** A character that needs no escape, and is none of these. */
function otherCharacters(taken: readonly number[]): string {
  const excluded = characters([[0, 0x1f], [0x22, 0x22], [0x5c, 0x5c], ...taken.map((code) => [code, code] as const)]);
  return `[^${excluded.slice(1)}`;
}
