import { characters, choice, type GrammarRules, literal, sequence } from './grammar-rules.ts';

/**
 * JSON on one line, with ", " and ": ". Numbers have no more digits than a double keeps apart from its neighbours, so that a
 * model cannot write zeros without an end; `\u` stands for no half of a character.
 */
export const json = {
  /** Of a string: one character. */
  character: `([^"\\\\\\U00000000-\\U0000001f] | "\\\\" ([\\U00000022\\U0000005c/bfnrt] | "u" ([0-9A-CE-Fa-ce-f] [0-9A-Fa-f]{3} | [Dd] [0-7] [0-9A-Fa-f]{2})))`,
  boolean: '("true" | "false")',
  null: '"null"',
  integer: '"-"? ("0" | [1-9] [0-9]{0,14})',
  number: '"-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,15})? ([eE] [+\\U0000002d]? [0-9]{1,2})?',
} as const;

/** A rule for any string. */
export function stringRule(rules: GrammarRules): string {
  return rules.rule(sequence(['"\\U00000022"', `${rules.rule(json.character)}*`, '"\\U00000022"']));
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

const anyRules = new WeakMap<GrammarRules, string>();

/** A rule for any JSON. */
export function anyRule(rules: GrammarRules): string {
  const known = anyRules.get(rules);
  if (known !== undefined) return known;
  const name = rules.reserve();
  anyRules.set(rules, name);
  const member = rules.rule(sequence([stringRule(rules), '": "', name]));
  const all = { least: 0, most: Infinity };
  rules.define(
    name,
    choice([
      stringRule(rules),
      rules.rule(json.number),
      json.boolean,
      json.null,
      rules.rule(listOf(rules, name, { open: '[', close: ']', ...all })),
      rules.rule(listOf(rules, member, { open: '{', close: '}', ...all })),
    ]),
  );
  return name;
}

/** One value, as JSON on one line. */
export function jsonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${jsonText(one)}`);
  return `{${members.join(', ')}}`;
}

/**
 * The name of a property that is none of these. It is written without escapes: a name could be hidden in them.
 */
export function otherNameRule(rules: GrammarRules, names: readonly string[]): string {
  const plain = rules.rule('[^"\\\\\\U00000000-\\U0000001f]*');
  const after = (rest: readonly string[]): string => {
    const ways: string[] = rest.includes('') ? [] : ['"\\U00000022"'];
    const byFirst = new Map<string, string[]>();
    for (const name of rest) {
      const [first] = name;
      if (first !== undefined) byFirst.set(first, [...(byFirst.get(first) ?? []), name.slice(first.length)]);
    }
    for (const [first, ends] of byFirst) ways.push(sequence([literal(first), rules.rule(after(ends))]));
    const taken = [...byFirst.keys()].map((letter) => letter.codePointAt(0)!);
    ways.push(sequence([otherCharacters(taken), plain, '"\\U00000022"']));
    return choice(ways);
  };
  return rules.rule(sequence(['"\\U00000022"', rules.rule(after(names))]));
}

/** A character that needs no escape, and is none of these. */
function otherCharacters(taken: readonly number[]): string {
  const excluded = characters([[0, 0x1f], [0x22, 0x22], [0x5c, 0x5c], ...taken.map((code) => [code, code] as const)]);
  return `[^${excluded.slice(1)}`;
}
