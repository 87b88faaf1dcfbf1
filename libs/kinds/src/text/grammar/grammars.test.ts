/** Texts that chance writes under a grammar, with the tokens of the embedded writer. The thread is the built one: `npm run build` first. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import { createTextCodec, encodeTextCodecFiles } from '../codec/text-codec.ts';
import type { TextConstraint } from '../text-input.ts';
import { Grammars, type TextMatcher } from './grammars.ts';

const model = resolve(import.meta.dirname, '../../../../../models/emoji-writer');
const read = (name: string) => JSON.parse(readFileSync(resolve(model, name), 'utf8')) as unknown;
const codecDocument = encodeTextCodecFiles({
  tokenizer: read('tokenizer.json'),
  config: read('tokenizer_config.json'),
});
const codec = createTextCodec(codecDocument);
const all = Array.from({ length: codec.vocabularySize }, (_, id) => id);
const end = 2;
const vocabulary = { codecDocument, endIds: [end] };
const grammars = new Grammars({ vocabulary });
afterAll(() => grammars.dispose());

const ebnf = (grammar: string) => ({ type: 'grammar', grammar });

const idOf = (text: string) => all.find((id) => codec.decode([id]) === text)!;

/** The same numbers for the same seed, 0 ≤ x < 1. */
function chance(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (Math.imul(state, 48_271) >>> 0) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** No model writes halves of characters that belong to nothing, which chance does. */
const whole = new Set(all.filter((id) => id === end || isWhole(codec.bytesOf(id))));

function isWhole(bytes: Uint8Array): boolean {
  return !new TextDecoder().decode(bytes).includes('\uFFFD');
}

/** Tokens that lead towards an end, which chance alone rarely does. */
const closing = new Set(all.filter((id) => id === end || /^["}\]]/u.test(codec.decode([id]))));

async function allowedBy(matcher: TextMatcher): Promise<{ ids: number[]; isEnd: boolean }> {
  await matcher.whenKnown();
  const { next } = matcher;
  if (next?.type !== 'allowed') throw new Error(next?.problem);
  const ids = all.filter((id) => (next.words[id >> 5]! >> (id & 31)) & 1);
  return { ids, isEnd: next.isEnd };
}

/** What chance writes until the end; it tends to it after some tokens. */
async function write(constraint: TextConstraint, seed: number): Promise<string> {
  const draw = chance(seed);
  const matcher = grammars.open(constraint);
  const tokens: number[] = [];
  for (;;) {
    const { ids, isEnd } = await allowedBy(matcher);
    expect(ids.length, `nothing may follow ${codec.decode(tokens)}`).toBeGreaterThan(0);
    const closers = ids.filter((id) => closing.has(id));
    const wholes = ids.filter((id) => whole.has(id));
    const among = closers.length > 0 && draw() < tokens.length / 40 ? closers : wholes.length > 0 ? wholes : ids;
    const id = among[Math.floor(draw() * among.length)]!;
    if (isEnd || id === end) break;
    expect(tokens.length).toBeLessThan(2000);
    tokens.push(id);
    matcher.accept(id);
  }
  matcher.close();
  return codec.decode(tokens);
}

const town = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const formats = {
  date: (text: string) => new Date(`${text}T00:00:00Z`).toISOString().startsWith(text),
  time: (text: string) => !Number.isNaN(Date.parse(`2026-01-01T${text}`)),
  'date-time': (text: string) => !Number.isNaN(Date.parse(text)),
  duration: /^P(?!$)(\d+W|\d+D)?(T\d+[HMS])?$/u,
  email: /^[^@\s]+@([\w-]+\.)+[a-z]+$/iu,
  hostname: (text: string) => new URL(`http://a.${text}.de/`).hostname === `a.${text}.de` && text.length < 254,
  ipv4: (text: string) => new URL(`http://${text}/`).hostname === text,
  ipv6: (text: string) => URL.canParse(`http://[${text}]/`),
  uri: (text: string) => URL.canParse(text),
  uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/u,
};

const schemas: Record<string, unknown> = {
  'any JSON': true,
  'any object': { type: 'object' },
  'a type of several': { type: ['integer', 'null', 'boolean'] },
  'properties in order, some left out': {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'string' }, c: { type: 'boolean' }, d: { type: 'null' } },
    required: ['b', 'd'],
  },
  'properties that are all optional': { properties: { a: {}, b: { type: 'null' } }, additionalProperties: false },
  'other properties beside named ones': {
    type: 'object',
    properties: { a: { type: 'string' }, ab: { type: 'string' }, 'ä"': { type: 'string' }, '"': {} },
    required: ['z'],
    additionalProperties: { type: 'integer' },
  },
  'names of properties': {
    type: 'object',
    propertyNames: { pattern: '^[a-c]{2}$' },
    additionalProperties: { type: 'null' },
  },
  'names of a list': { type: 'object', propertyNames: { enum: ['x', 'y'] } },
  'an array': { type: 'array', items: { type: 'integer' } },
  'an array of so many': { type: 'array', items: { enum: ['a', 'b'] }, minItems: 3, maxItems: 40 },
  'an array of none': { type: 'array', maxItems: 0 },
  'a tuple': { type: 'array', prefixItems: [{ const: 1 }, { type: 'null' }], minItems: 1, items: false },
  'a tuple and more': {
    type: 'array',
    prefixItems: [{ const: 1 }, { type: 'null' }],
    items: { type: 'boolean' },
    minItems: 3,
    maxItems: 5,
  },
  'a length': { type: 'string', minLength: 2, maxLength: 5 },
  'a long length': { type: 'string', minLength: 35, maxLength: 1000 },
  'a length at least': { type: 'string', minLength: 17 },
  'a pattern': { type: 'string', pattern: '^(?:[A-F0-9]{2}:){2,3}[A-F0-9]{2}$' },
  'a pattern with what JSON escapes': { type: 'string', pattern: '^["\\\\\\n\\x01-\\x03]{4}.[^a-z][äöü]\\d+?|a|b{0}$' },
  'classes of a pattern': { type: 'string', pattern: '\\w\\W\\s\\S\\D[^\\d"][\\s\\S][a-c-][\\u0041\\u{42}\\-]?' },
  'a whole number between borders': { type: 'integer', minimum: -120, exclusiveMaximum: 1345 },
  'a whole number from a border': { type: 'integer', exclusiveMinimum: 97 },
  'a whole number up to a border': { type: 'integer', maximum: -8 },
  'a number between borders': { type: 'number', minimum: 0.5, maximum: 2.25 },
  'a number between open borders': { type: 'number', exclusiveMinimum: -1, exclusiveMaximum: 1 },
  'a number between large open borders': { type: 'number', exclusiveMinimum: -1e12, exclusiveMaximum: 1e12 },
  'a number from a border': { type: 'number', minimum: -0.015 },
  'the numbers of zod': { type: 'integer', minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
  'a list of values': { enum: ['a', 1, null, { b: [1, 'ü'] }, '"\\', -1.5e-7] },
  'a list of values of a type': { type: ['string', 'null'], enum: ['a', 1, null] },
  'one value': { const: { a: [1, 2], b: {} } },
  'any of': { anyOf: [{ type: 'string', maxLength: 3 }, { type: 'null' }, town] },
  'one of': {
    oneOf: [
      { type: 'object', properties: { kind: { const: 'a' }, n: { type: 'integer' } }, required: ['kind', 'n'] },
      { type: 'object', properties: { kind: { const: 'b' } }, required: ['kind'] },
      { type: 'string' },
    ],
  },
  'all of one': { allOf: [town], title: 'a town' },
  'a reference': { $ref: '#/$defs/a~1b', $defs: { 'a/b': { type: 'integer' } }, description: 'said of it' },
  recursion: {
    type: 'object',
    properties: { value: { type: 'integer' }, children: { type: 'array', items: { $ref: '#' }, maxItems: 2 } },
    required: ['value'],
    additionalProperties: false,
  },
  'recursion by another': {
    $ref: '#/$defs/list',
    $defs: {
      list: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/pair' }] },
      pair: { type: 'array', prefixItems: [{ const: 0 }, { $ref: '#/$defs/list' }], minItems: 2, items: false },
    },
  },
  ...Object.fromEntries(Object.keys(formats).map((format) => [`a ${format}`, { type: 'string', format }])),
  "zod's email": {
    type: 'string',
    format: 'email',
    pattern: "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
  },
};

describe('what is written by chance', () => {
  const ajv = new Ajv2020({ strict: false, formats });

  it.each(Object.entries(schemas))('fits %s', async (_, schema) => {
    const constraint = { type: 'grammar', grammar: await grammars.ofSchema(schema) };
    const fits = ajv.compile(schema as object);
    for (let seed = 0; seed < 12; seed++) {
      const text = await write(constraint, seed);
      const value: unknown = JSON.parse(text);
      expect(fits(value), `${text}: ${ajv.errorsText(fits.errors)}`).toBe(true);
    }
  });
});

it('what is written by chance is what else a schema may be, if that may be itself', async () => {
  const grammar = await grammars.ofSchema({ anyOf: [{ $ref: '#' }, { type: 'null' }] });
  expect(await write({ type: 'grammar', grammar }, 1)).toBe('null');
});

describe('what is written by chance', () => {
  // xgrammar takes some of these for one another, unless they are kept apart.
  it.each([
    [['xprq', 'xpq']],
    [['a', 'ab', 'abc', 'bc', 'c', 'cc', 'é', 'êê', 'éb', '\u00eaa0', '\u007fa', '\u4e2da', '😀a']],
    [Array.from({ length: 60 }, (_, at) => `${['get', 'set', 'let'][at % 3]}_${['the', 'a'][at % 2]}_${at * at}_set`)],
  ])('is one of %j', async (words) => {
    const grammar = `root ::= ${words.map((word) => `"${word}"`).join(' | ')}`;
    const ofSchema = await grammars.ofSchema({ enum: words });
    for (let seed = 0; seed < 25; seed++) {
      expect(words).toContain(await write({ type: 'grammar', grammar }, seed));
      expect(words).toContain(JSON.parse(await write({ type: 'grammar', grammar: ofSchema }, seed)));
    }
  });

  it('has as many of a rule as it allows', async () => {
    const grammar = 'root ::= "<" ("ab")+ (item "," item | item ";" | item) ">"\nitem ::= "x" | "x" item | "y" "z"+';
    for (let seed = 0; seed < 25; seed++)
      expect(await write({ type: 'grammar', grammar }, seed)).toMatch(
        /^<(ab)+((x|yz+)+,(x|yz+)+|(x|yz+)+;|(x|yz+)+)>$/u,
      );
  });
});

const refusals: Record<string, [schema: unknown, message: string]> = {
  'a schema that is false': [false, '$: is false'],
  'a schema that is none': [7, '$: is 7, expected a schema'],
  'a schema within that is none': [{ properties: { a: 'b' } }, '$.properties.a: is "b", expected a schema'],
  'a type that is none': [{ type: 'text' }, '$.type: is "text", expected some of object, array'],
  'a $ref to another document': [
    { items: { $ref: 'https://a/b' } },
    '$.items.$ref: is "https://a/b", expected one into',
  ],
  'a $ref to nothing': [{ $ref: '#/$defs/a' }, '$.$ref: leads nowhere: there is no "#/$defs/a"'],
  'a $ref to itself': [{ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, '$: requires itself within itself'],
  'what requires itself': [
    { type: ['object'], properties: { a: { type: 'array', items: { $ref: '#' }, minItems: 1 } }, required: ['a'] },
    '$: requires itself within itself: no text of it has an end',
  ],
  'what requires itself within': [
    {
      properties: { a: { $ref: '#/$defs/b' } },
      $defs: { b: { prefixItems: [{ $ref: '#/$defs/b' }], minItems: 1, type: 'array' } },
    },
    '$.$defs.b: requires itself within itself',
  ],
  'names that are too long': [
    { properties: { ['a'.repeat(100_000)]: {} }, additionalProperties: {} },
    '$: is too deep, or has names that are too long',
  ],
  'oneOf of many': [
    { oneOf: Array.from({ length: 300 }, (_, at) => ({ const: at })) },
    '$.oneOf: has 300 schemas, expected',
  ],
  'several allOf': [{ allOf: [{}, {}] }, '$.allOf: has 2 schemas, and is supported with one'],
  'oneOf that overlaps': [{ oneOf: [{ type: 'integer' }, { type: 'number' }] }, '$.oneOf: is supported where no value'],
  'keywords beside anyOf': [{ anyOf: [{}], properties: {} }, '$.properties: is not supported beside anyOf'],
  'keywords beside $ref': [
    { $ref: '#/$defs/a', minimum: 1, $defs: { a: {} } },
    '$.minimum: is not supported beside $ref',
  ],
  'length beside a pattern': [
    { type: 'string', pattern: 'a', maxLength: 2 },
    '$.maxLength: is not supported beside pattern',
  ],
  'a length that is none': [{ type: 'string', minLength: -1 }, '$.minLength: is -1, expected a whole number'],
  'lengths that leave nothing': [
    { type: 'string', minLength: 3, maxLength: 2 },
    '$: minLength and maxLength leave nothing',
  ],
  'items that leave nothing': [
    { prefixItems: [{}], items: false, minItems: 2 },
    '$: minItems, maxItems and items leave',
  ],
  'borders that leave nothing': [
    { type: 'integer', minimum: 3, maximum: 2 },
    '$: allows no integer: none is between 3 and 2',
  ],
  'open borders that leave nothing': [{ type: 'number', exclusiveMinimum: 1, maximum: 1 }, '$: allows no number'],
  'a border that is no number': [
    { type: 'number', exclusiveMinimum: true },
    '$.exclusiveMinimum: is true, expected a number',
  ],
  'a border of many digits': [{ type: 'number', minimum: 1e-20 }, '$.minimum: is 1e-20, expected at most 15 digits'],
  'an enum of nothing': [{ type: 'string', enum: [1] }, '$.enum: has no value that its schema allows'],
  'required without its property': [
    { properties: { a: {} }, required: ['b'] },
    '$.required: names "b", which is none of the properties',
  ],
  'a format that is not known': [{ type: 'string', format: 'iri' }, '$.format: is "iri", expected one of date, time'],
  'a lookahead': [{ properties: { a: { pattern: '^(?=a)' } } }, '$.properties.a.pattern: (?= is not supported at 1'],
  'a reference back': [{ pattern: '(a)\\1' }, '$.pattern: \\1 is not supported at 3'],
  'a property of Unicode': [{ pattern: '\\p{L}' }, '$.pattern: \\p is not supported at 0'],
  'an anchor within': [{ pattern: 'a(^b)' }, '$.pattern: ^ is not supported at 2'],
  'a class of many characters': [{ pattern: '[一-鿿]' }, '$.pattern: a class has 20992 characters beyond ASCII'],
  'a pattern that is none': [{ pattern: '(' }, '$.pattern: Invalid regular expression'],
  'schemas that are too deep': [
    JSON.parse(`${'{"items":'.repeat(80)}{}${'}'.repeat(80)}`),
    `${'.items'.repeat(65)}: is too deep: expected at most 64`,
  ],
  'a schema of a megabyte': [
    { enum: Array.from({ length: 50_000 }, (_, at) => `the value of number ${at}`) },
    '$: is too much: a grammar of ',
  ],
};
for (const keyword of (
  'not if then else multipleOf uniqueItems contains minContains maxContains dependentRequired ' +
  'dependentSchemas unevaluatedProperties unevaluatedItems patternProperties minProperties maxProperties ' +
  '$dynamicRef $anchor contentSchema nonsense constructor'
).split(' '))
  refusals[keyword] = [
    { properties: { a: { [keyword]: 1 } } },
    `$.properties.a.${keyword}: is not supported; of JSON Schema there are type, $ref`,
  ];

describe('a schema', () => {
  it.each(Object.entries(refusals))('with %s is refused', async (_, [schema, message]) => {
    await expect(grammars.ofSchema(schema)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(message) as string,
    });
  });
});

describe('a constraint', () => {
  const kept = new Grammars();
  afterAll(() => kept.dispose());

  it.each<[string, TextConstraint, string]>([
    [
      'EBNF of a rule that is not there',
      ebnf('root ::= "a" b'),
      'EBNF parser error at line 1, column 14: Rule "b" is not',
    ],
    ['EBNF that breaks off', ebnf('root ::= "a"\nb ::= [a'), 'EBNF lexer error at line 2, column 9: Unterminated'],
    ['EBNF without a root', ebnf('a ::= "a"'), 'root'],
    ['EBNF with a lookahead in a regex', { type: 'regex', pattern: '(?=a)' }, 'Lookahead is not supported yet'],
    ['a class of other letters', ebnf('root ::= "[é" [a-zé]'), 'line 1, column 19: "é" in a class'],
    ['a class of other codes', ebnf('# [é]\nroot ::= [\\u4e00-\\u9fff]'), 'line 2, column 11: "\\u4e00" in a class'],
    ['nothing of the kind', { type: 'nonsense' }, 'it cannot be read'],
  ])('of %s is refused, and the next is not', async (_, constraint, message) => {
    const refused = kept.check(constraint);
    const next = kept.check(ebnf('root ::= [a-z"\\]] "é中" [^"\\x7f]'));
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(message) as string,
    });
    await next;
  });

  it('of a megabyte is refused', async () => {
    const message = 'the grammar has 1200044 characters, expected at most 1000000';
    await expect(kept.check(ebnf(`root ::= "${'a'.repeat(1_200_000)}"`))).rejects.toMatchObject({ message });
  });

  it('that takes too long is refused, and the next is not', async () => {
    const hurried = new Grammars({ vocabulary, limitMs: 3000 });
    // Takes half a minute of a processor.
    const slow = hurried.open(ebnf(`root ::= ${'[^a]{0,400} "b" '.repeat(400)}`));
    const quick = hurried.open(ebnf('root ::= "a"'));
    await slow.whenKnown();
    expect(slow.next).toMatchObject({ type: 'refused', problem: 'it takes longer than 3 s to prepare' });
    await quick.whenKnown();
    expect(quick.next).toMatchObject({ type: 'allowed', isEnd: false });
    await hurried.dispose();
  });
});

describe('a matcher', () => {
  const grammar = { type: 'grammar', grammar: 'root ::= "ab" ("c" | "d")*' };
  const [a, b, c] = [idOf('a'), idOf('b'), idOf('c')];

  it('goes on from tokens that were written elsewhere', async () => {
    const matcher = grammars.open(grammar, [a]);
    expect((await allowedBy(matcher)).ids).toContain(b);
    matcher.accept(b);
    const { ids } = await allowedBy(matcher);
    expect(ids).toEqual((await allowedBy(grammars.open(grammar, [a, b]))).ids);
    expect(ids).toContain(end);
    expect(ids).toContain(c);
  });

  it('goes on when another breaks the thread', async () => {
    const matcher = grammars.open(grammar);
    await matcher.whenKnown();
    matcher.accept(a);
    const wrong = grammars.open({ type: 'grammar', grammar: 'root ::= nothing' });
    matcher.accept(b);
    await wrong.whenKnown();
    expect(wrong.next).toMatchObject({ type: 'refused', problem: expect.stringContaining('"nothing"') as string });
    expect((await allowedBy(matcher)).ids).toContain(c);
  });

  it('says that the end is all there is', async () => {
    const matcher = grammars.open({ type: 'grammar', grammar: 'root ::= "ab"' }, [a, b]);
    expect(await allowedBy(matcher)).toEqual({ ids: [end], isEnd: true });
  });

  it('says what it cannot go on with', async () => {
    const matcher = grammars.open(grammar, [c]);
    await matcher.whenKnown();
    expect(matcher.next).toEqual({ type: 'refused', problem: 'a token does not fit its grammar' });
  });

  it('keeps no more than the last of many grammars, and whoever has an older one goes on', async () => {
    const first = grammars.open(grammar);
    for (let at = 0; at < 40; at++) {
      const matcher = grammars.open({ type: 'grammar', grammar: `root ::= "${at}" root | "x"` });
      expect((await allowedBy(matcher)).ids.length).toBeGreaterThan(0);
      matcher.close();
    }
    first.accept(a);
    expect((await allowedBy(first)).ids).toContain(b);
  });
});
