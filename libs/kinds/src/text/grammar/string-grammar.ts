import { type GrammarRules, sequence } from './grammar-rules.ts';
import { json, stringRule } from './json-grammar.ts';
import { checkOrder, countOf, type Schema } from './schema-keywords.ts';

const quote = '"\\U00000022"';

/** Strings of a schema. */
export function stringGrammar(rules: GrammarRules, schema: Schema, place: string): string {
  const least = countOf(schema, 'minLength', place, 0);
  const most = countOf(schema, 'maxLength', place, Infinity);
  checkOrder(least, most, { place, keywords: 'minLength and maxLength' });
  if (least === 0 && most === Infinity) return stringRule(rules);
  return rules.rule(sequence([quote, rules.repeat(json.character, least, most), quote]));
}
