/** Random texts under a grammar, with emoji-writer's tokens. Uses the built thread: run `npm run build` first. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import { createTextCodec, encodeTextCodecFiles } from '../codec/text-codec.ts';
import type { TextConstraint } from '../form/text-input.ts';
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

const ebnf = (grammar: string): TextConstraint => ({ type: 'grammar', grammar });
const ofSchema = (schema: unknown): TextConstraint => ({ type: 'json_schema', json_schema: schema });

const idOf = (text: string) => all.find((id) => codec.decode([id]) === text)!;

/** Returns a seeded random generator, 0 ≤ x < 1. */
function chance(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (Math.imul(state, 48_271) >>> 0) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** Tokens of complete characters: random choice would pick stray partial characters, which no model generates. */
const whole = new Set(all.filter((id) => id === end || isWhole(codec.bytesOf(id))));

function isWhole(bytes: Uint8Array): boolean {
  return !new TextDecoder().decode(bytes).includes('\uFFFD');
}

/** Tokens that lead towards the end, which random choice rarely picks. */
const closing = new Set(all.filter((id) => id === end || /^["}\]]/u.test(codec.decode([id]))));

async function allowedBy(matcher: TextMatcher): Promise<{ ids: number[]; isEnd: boolean }> {
  await matcher.whenKnown();
  const { next } = matcher;
  if (next?.type !== 'allowed') throw new Error(next?.problem);
  const ids = all.filter((id) => (next.words[id >> 5]! >> (id & 31)) & 1);
  return { ids, isEnd: next.isEnd };
}

/** Generates a random text until its end; prefers closing tokens after a while. */
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
  'one of, told apart by a property that is required beside it': {
    type: 'object',
    properties: { kind: { type: 'string' } },
    required: ['kind'],
    oneOf: [
      { properties: { kind: { const: 'a' }, n: { type: 'integer' } }, required: ['n'] },
      { properties: { kind: { const: 'b' }, w: { type: 'string', maxLength: 3 } }, required: ['w'] },
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

describe('a random text under a schema', () => {
  const ajv = new Ajv2020({ strict: false, formats });

  it.each(Object.entries(schemas))('is valid for %s', async (_, schema) => {
    const constraint = ofSchema(schema);
    const fits = ajv.compile(schema as object);
    for (let seed = 0; seed < 12; seed++) {
      const text = await write(constraint, seed);
      const value: unknown = JSON.parse(text);
      expect(fits(value), `${text}: ${ajv.errorsText(fits.errors)}`).toBe(true);
    }
  });
});

it('a schema that may be itself yields its other alternative', async () => {
  expect(await write(ofSchema({ anyOf: [{ $ref: '#' }, { type: 'null' }] }), 1)).toBe('null');
});

describe('a random text under a grammar', () => {
  // xgrammar confuses some of these unless they are separate rules.
  it.each([
    [['xprq', 'xpq']],
    [['a', 'ab', 'abc', 'bc', 'c', 'cc', 'é', 'êê', 'éb', '\u00eaa0', '\u007fa', '\u4e2da', '😀a']],
    [Array.from({ length: 60 }, (_, at) => `${['get', 'set', 'let'][at % 3]}_${['the', 'a'][at % 2]}_${at * at}_set`)],
  ])('is one of %j', async (words) => {
    const grammar = `root ::= ${words.map((word) => `"${word}"`).join(' | ')}`;
    for (let seed = 0; seed < 25; seed++) {
      expect(words).toContain(await write({ type: 'grammar', grammar }, seed));
      expect(words).toContain(JSON.parse(await write(ofSchema({ enum: words }), seed)));
    }
  });

  it('repeats rules as often as allowed', async () => {
    const grammar = 'root ::= "<" ("ab")+ (item "," item | item ";" | item) ">"\nitem ::= "x" | "x" item | "y" "z"+';
    for (let seed = 0; seed < 25; seed++)
      expect(await write({ type: 'grammar', grammar }, seed)).toMatch(
        /^<(ab)+((x|yz+)+,(x|yz+)+|(x|yz+)+;|(x|yz+)+)>$/u,
      );
  });
});

describe('a matcher', () => {
  const grammar = ebnf('root ::= "ab" ("c" | "d")*');
  const [a, b, c] = [idOf('a'), idOf('b'), idOf('c')];

  it('continues after given tokens', async () => {
    const matcher = grammars.open(grammar, [a]);
    expect((await allowedBy(matcher)).ids).toContain(b);
    matcher.accept(b);
    const { ids } = await allowedBy(matcher);
    expect(ids).toEqual((await allowedBy(grammars.open(grammar, [a, b]))).ids);
    expect(ids).toContain(end);
    expect(ids).toContain(c);
  });

  it('survives a thread that another matcher broke', async () => {
    const matcher = grammars.open(grammar);
    await matcher.whenKnown();
    matcher.accept(a);
    const wrong = grammars.open({ type: 'grammar', grammar: 'root ::= nothing' });
    matcher.accept(b);
    await wrong.whenKnown();
    expect(wrong.next).toMatchObject({
      type: 'refused',
      problem: 'EBNF: line 1, column 10: there is no rule "nothing"',
    });
    expect((await allowedBy(matcher)).ids).toContain(c);
  });

  it('reports isEnd if only the end is allowed', async () => {
    const matcher = grammars.open({ type: 'grammar', grammar: 'root ::= "ab"' }, [a, b]);
    expect(await allowedBy(matcher)).toEqual({ ids: [end], isEnd: true });
  });

  it('reports a token that does not match', async () => {
    const matcher = grammars.open(grammar, [c]);
    await matcher.whenKnown();
    expect(matcher.next).toEqual({ type: 'refused', problem: 'a token does not fit its grammar' });
  });

  it('evicts old grammars, and open matchers of evicted grammars continue', async () => {
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
