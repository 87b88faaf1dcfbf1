import { type GrammarRules, sequence } from './grammar-rules.ts';
import { countedStringRule, stringRule } from './json-grammar.ts';
import { RegexError, regexGrammar } from './regex-grammar.ts';
import { checkOrder, countOf, type Schema, schemaError, shortJson } from './schema-keywords.ts';

const quote = '"\\U00000022"';

const date =
  '[12]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))';
const time = '([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)';
const host = '[a-z0-9]{1,30}(-[a-z0-9]{1,20})?(\\.[a-z0-9]{1,30}(-[a-z0-9]{1,20})?){0,6}';
const byte = '(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';

/** A part of what each format allows, and one of it: RFC 3339, 5321, 1123, 2673, 4291, 3986 and 9562. */
const formats: Readonly<Record<string, { readonly pattern: string; readonly example: string }>> = {
  date: { pattern: date, example: '2026-11-22' },
  time: { pattern: time, example: '12:30:00Z' },
  'date-time': { pattern: `${date}T${time}`, example: '2026-11-22T12:30:00Z' },
  duration: { pattern: 'P(\\d{1,4}W|\\d{1,6}D(T\\d{1,6}[HMS])?|T\\d{1,6}[HMS])', example: 'PT90M' },
  email: {
    pattern: '[A-Za-z0-9]{1,20}([._+-][A-Za-z0-9]{1,20}){0,2}@([A-Za-z0-9]{1,30}\\.){1,4}[A-Za-z]{2,10}',
    example: 'a.b@example.com',
  },
  hostname: { pattern: host, example: 'a.example.com' },
  ipv4: { pattern: `(${byte}\\.){3}${byte}`, example: '192.0.2.1' },
  ipv6: { pattern: '([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}', example: '2001:db8:0:0:0:0:0:1' },
  uri: {
    pattern: `https?://${host}(:[1-9]\\d{0,3})?(/[A-Za-z0-9._~-]*)*([?][A-Za-z0-9._~=&-]*)?(#[A-Za-z0-9._~-]*)?`,
    example: 'https://example.com/a?b=1#c',
  },
  uuid: {
    pattern: '[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}',
    example: 'f81d4fae-7dec-4d11-a765-00a0c91e6bf6',
  },
};

/** Strings of a schema. */
export function stringGrammar(rules: GrammarRules, schema: Schema, place: string): string {
  const least = countOf(schema, 'minLength', place, 0);
  const most = countOf(schema, 'maxLength', place, Infinity);
  checkOrder(least, most, { place, keywords: 'minLength and maxLength' });
  const isCounted = least > 0 || most < Infinity;
  const { pattern, format } = schema;
  if (pattern === undefined && format === undefined) {
    if (!isCounted) return stringRule(rules);
    return countedStringRule(rules, least, most);
  }
  if (isCounted)
    throw schemaError(
      `${place}.${least > 0 ? 'minLength' : 'maxLength'}`,
      `is not supported beside ${pattern === undefined ? 'format' : 'pattern'}, which can say it itself`,
    );
  return rules.rule(sequence([quote, patternGrammar(rules, schema, place), quote]));
}

function patternGrammar(rules: GrammarRules, { pattern, format }: Schema, place: string): string {
  const known = typeof format === 'string' && Object.hasOwn(formats, format) ? formats[format] : undefined;
  if (format !== undefined && known === undefined)
    throw schemaError(`${place}.format`, `is ${shortJson(format)}, expected one of ${Object.keys(formats).join(', ')}`);
  if (pattern === undefined) return regexGrammar(rules, known!.pattern);
  if (typeof pattern !== 'string') throw schemaError(`${place}.pattern`, `is ${shortJson(pattern)}, expected a text`);
  try {
    return regexGrammar(rules, pattern);
  } catch (error) {
    if (!(error instanceof RegexError)) throw error;
    // A library that writes both means the same by them: zod's pattern of an email has lookaheads.
    if (known !== undefined && matches(pattern, known.example)) return regexGrammar(rules, known.pattern);
    throw schemaError(`${place}.pattern`, error.message);
  }
}

function matches(pattern: string, example: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(example);
  } catch {
    return false;
  }
}
