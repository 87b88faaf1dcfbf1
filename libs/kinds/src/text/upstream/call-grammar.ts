/** Calls of tools as a grammar in GBNF, for servers that keep a text to a grammar and know no tools. */
import { type CallMarkup, triggerOf } from '../form/call-markup.ts';
import type { TextForm } from '../form/form-schema.ts';
import { characters, choice, literal, sequence } from '../grammar/schema/grammar-rules.ts';

/** A tool that may be called, with the grammar of its arguments. */
export interface CallableTool {
  readonly name: string;
  readonly grammar: string;
}

/**
 * Text up to a call, and from where one begins the call; or calls and nothing else where one is required. The same as
 * `constraintOf` says it to our own engines.
 */
export function callGrammar(
  tools: readonly CallableTool[],
  { tool_choice: wanted = 'auto', parallel_tool_calls: parallel = true }: TextForm,
  markup: CallMarkup,
): string {
  const { open, begin, middle, end, separator, close } = markup;
  const isOne = !parallel || typeof wanted === 'object' || separator === undefined;
  const ways = tools.map(({ name }, at) => sequence([literal(name + middle), ruleOf(at, 'root')]));
  const more = isOne ? '""' : `(${sequence([literal(separator + begin), 'call'])})*`;
  const rules = [
    `call ::= ${sequence([choice(ways), literal(end)])}`,
    ...tools.map(({ grammar }, at) =>
      grammar.replaceAll(word, (text, name?: string) => (name ? ruleOf(at, name) : text)),
    ),
  ];
  const list = (head: string): string => sequence([literal(head), 'call', more, literal(close)]);
  if (wanted !== 'auto') return [`root ::= ${list(open + begin)}`, ...rules].join('\n');
  const trigger = triggerOf(markup);
  const rest = (open + begin).slice(trigger.length);
  // Calls of a list are one thing; others may have text between them.
  const called = open === '' ? sequence([literal(rest), 'call', isOne ? '""' : 'text-0']) : list(rest);
  return ['root ::= text-0', ...textUpTo(trigger, 'called'), `called ::= ${called}`, ...rules].join('\n');
}

/** Names of rules, outside of texts and classes. */
const word = /"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\b(root|r\d+)\b/g;

function ruleOf(at: number, name: string): string {
  return `t${at}-${name}`;
}

/** Rules for any text, which goes on as `next` once it has the trigger in it: rule `text-i` has read its first i characters. */
function textUpTo(trigger: string, next: string): string[] {
  const letters = Array.from(trigger);
  const known = [...new Set(letters)];
  const codes = known.map((letter) => letter.codePointAt(0)!);
  const others = `[^${characters(codes.map((code) => [code, code] as const)).slice(1)}`;
  const after = (read: readonly string[]): string => {
    const start = Array.from(read, (_letter, at) => at).find((at) =>
      letters.join('').startsWith(read.slice(at).join('')),
    );
    const length = start === undefined ? 0 : read.length - start;
    return length === letters.length ? next : `text-${length}`;
  };
  return letters.map((_letter, at) => {
    const ways = known.map((letter) => sequence([literal(letter), after([...letters.slice(0, at), letter])]));
    return `text-${at} ::= ${['""', ...ways, `${others} text-0`].join(' | ')}`;
  });
}
