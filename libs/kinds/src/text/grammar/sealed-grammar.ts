/**
 * Works around xgrammar 0.1.27: where two ways of a rule begin with the same, it may take states of one for states of the
 * other, and then allows more than the grammar (mlc-ai/xgrammar#618, mended after it). `"-" [1-9] | "-" [1-9] "." [0-9]` and
 * five more of the kind are enough. Here each of these ways becomes a rule of its own, and none that would be put back into
 * its place: those are the rules that lead to no other.
 */

/** A rule as xgrammar prints it: `name ::= ((a "b") | ("c")) (=d)`. */
interface PrintedRule {
  readonly name: string;
  /** Elements of each way; none for the empty one. Undefined for a rule of another form, which stays as it is. */
  readonly ways: readonly (readonly string[])[] | undefined;
  /** What is printed after the name, or after the ways. */
  readonly rest: string;
}

const element = /"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]\*?|[^\s()"[\]|]+/gu;
/** A way: `(…)` or `""`. */
const way = /\s*(?:\|\s*)?(?:\(((?:"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[^()"[\]])*)\)|"")/uy;
const emptyRule = 'sealed_empty';

/**
 * @param printed a grammar as xgrammar prints it, after its own simplifications.
 * @returns the same grammar, and the name of its first rule: the last that is printed.
 */
export function sealedGrammar(printed: string): { text: string; root: string } {
  const rules = unambiguous(printed)
    .trim()
    .split(/\n(?=\S+ ::= )/u)
    .map(parseRule);
  const byName = new Map(rules.map((rule) => [rule.name, rule]));
  const lines: string[] = [`${emptyRule} ::= ""`];
  for (const rule of rules) {
    const { name, ways, rest } = rule;
    if (ways === undefined || isRepetition(name, ways) || !haveSameBeginning(ways, byName))
      lines.push(`${name} ::= ${ways ? bodyOf(ways) : ''}${rest}`);
    else {
      const sealed = ways.map((elements, at) => (elements.length === 0 ? [] : [`${name}_sealed_${at}`]));
      lines.push(`${name} ::= ${bodyOf(sealed)}${rest}`);
      for (const [at, elements] of ways.entries())
        if (elements.length > 0) lines.push(`${name}_sealed_${at} ::= ${bodyOf([[...elements, emptyRule]])}`);
    }
  }
  return { text: lines.join('\n'), root: rules.at(-1)!.name };
}

/** `\xea` is printed with two digits, and read with all that follow. */
function unambiguous(printed: string): string {
  return printed.replaceAll(/\\(?:x([\da-f]{2})|[^])/giu, (escape: string, digits?: string) =>
    digits === undefined ? escape : `\\U000000${digits}`,
  );
}

function parseRule(line: string): PrintedRule {
  const [name = ''] = line.split(' ::= ', 1);
  const body = line.slice(name.length + ' ::= '.length);
  const ways: string[][] = [];
  if (!body.startsWith('(')) return { name, ways: undefined, rest: body };
  way.lastIndex = 1;
  let end = 1;
  for (let found = way.exec(body); found !== null; found = way.exec(body)) {
    ways.push([...(found[1] ?? '').matchAll(element)].map(([text]) => text));
    end = way.lastIndex;
  }
  return body[end] === ')' ? { name, ways, rest: body.slice(end + 1) } : { name, ways: undefined, rest: body };
}

function bodyOf(ways: readonly (readonly string[])[]): string {
  return `(${ways.map((elements) => (elements.length === 0 ? '""' : `(${elements.join(' ')})`)).join(' | ')})`;
}

/** `a b c | a b c rule`, of which nothing is mixed up; it has to stay what it is to be quick. */
function isRepetition(name: string, ways: PrintedRule['ways'] & {}): boolean {
  const [one, more] = ways.toSorted((left, right) => left.length - right.length);
  return ways.length === 2 && [...one!, name].join(' ') === more!.join(' ');
}

function haveSameBeginning(ways: PrintedRule['ways'] & {}, byName: ReadonlyMap<string, PrintedRule>): boolean {
  const seen = new Set<string>();
  for (const elements of ways) {
    const beginnings = beginningsOf(elements, byName);
    if (beginnings.some((beginning) => seen.has(beginning))) return true;
    for (const beginning of beginnings) seen.add(beginning);
  }
  return false;
}

/** What a way may begin with, once rules that lead to no other stand in their places. */
function beginningsOf([first]: readonly string[], byName: ReadonlyMap<string, PrintedRule>): string[] {
  if (first === undefined) return [];
  if (first.startsWith('"')) return [firstByte(first)];
  if (first.startsWith('[')) return [first.endsWith('*') ? 'any number' : first];
  const ways = byName.get(first)?.ways;
  const isPlain = ways?.every((elements) => elements.length > 0 && elements.every((one) => /^["[]/u.test(one)));
  return isPlain ? ways!.flatMap((elements) => beginningsOf(elements, byName)) : [first];
}

/** The first byte of a text in quotes: characters beyond ASCII share theirs with others. */
function firstByte(text: string): string {
  const code = /^"\\(?:x([\da-f]{2})|u([\da-f]{4})|U([\da-f]{8}))/iu.exec(text);
  const digits = code?.slice(1).find((digits) => digits !== undefined);
  if (digits !== undefined && Number.parseInt(digits, 16) > 0x7f) return 'beyond ASCII';
  const letter = text.slice(1, text[1] === '\\' ? 3 : 2);
  return code === null ? (letter.codePointAt(0)! > 0x7f ? 'beyond ASCII' : letter) : code[0].slice(1);
}
