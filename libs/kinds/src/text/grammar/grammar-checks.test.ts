/** Accepted and rejected constraints, and fairness between owners. Uses the built thread: run `npm run build` first. */
import { afterAll, describe, expect, it } from 'vitest';
import type { TextConstraint } from '../form/text-input.ts';
import { GrammarChecks } from './grammar-checks.ts';

const ofSchema = (schema: unknown): TextConstraint => ({ type: 'json_schema', json_schema: schema });
const ebnf = (grammar: string): TextConstraint => ({ type: 'grammar', grammar });
const regex = (pattern: string): TextConstraint => ({ type: 'regex', pattern });

const checks = new GrammarChecks();
afterAll(() => checks.dispose());

/** Returns the problem of a constraint, or "accepted". */
async function outcomeOf(constraint: TextConstraint, by = checks): Promise<string> {
  try {
    await by.check(constraint);
    return 'accepted';
  } catch (error) {
    return (error as Error).message;
  }
}

const names = (count: number) => Array.from({ length: count }, (_, at) => `name_${at}`);
const properties = (count: number) => Object.fromEntries(names(count).map((name) => [name, { type: 'string' }]));
const nested = (depth: number): unknown => JSON.parse(`${'{"items":'.repeat(depth)}{}${'}'.repeat(depth)}`);

const refusals: Record<string, [schema: unknown, message: string]> = {
  'a schema that is false': [false, '$: is false'],
  'a schema that is not a schema': [7, '$: is 7, expected a schema'],
  'a property that is not a schema': [{ properties: { a: 'b' } }, '$.properties.a: is "b", expected a schema'],
  'an unknown type': [{ type: 'text' }, '$.type: is "text", expected some of object, array'],
  'a $ref to another document': [
    { items: { $ref: 'https://a/b' } },
    '$.items.$ref: is "https://a/b", expected a reference',
  ],
  'a $ref to nothing': [{ $ref: '#/$defs/a' }, '$.$ref: leads nowhere: there is no "#/$defs/a"'],
  'a cycle of $ref': [{ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, '$: requires itself within itself'],
  'a required property that requires itself': [
    { type: 'object', properties: { a: { type: 'array', items: { $ref: '#' }, minItems: 1 } }, required: ['a'] },
    '$: requires itself within itself: no value of it has an end',
  ],
  'an overlapping oneOf': [
    { oneOf: [{ type: 'integer' }, { type: 'number' }] },
    '$.oneOf: is supported where no value',
  ],
  'a negative length': [{ type: 'string', minLength: -1 }, '$.minLength: is -1, expected a whole number'],
  'contradictory lengths': [{ type: 'string', minLength: 3, maxLength: 2 }, 'minLength (3) is greater than maxLength'],
  'contradictory bounds': [{ type: 'integer', minimum: 3, maximum: 2 }, 'minimum (3) is greater than maximum (2)'],
  'an empty enum': [{ enum: [] }, '$.enum: is [], expected a list'],
  'an enum of another type': [{ type: 'string', enum: [1] }, 'Unsatisfiable schema'],
  'a lookahead': [
    { properties: { a: { pattern: '^(?=a)' } } },
    '$.properties.a.pattern: (?= is not supported: a lookahead',
  ],
  'a lookbehind': [{ pattern: '(?<!a)b' }, '$.pattern: (?<! is not supported: a lookbehind, at 0'],
  'a back-reference': [{ pattern: '(a)\\1' }, '$.pattern: \\1 is not supported: a back-reference, at 3'],
  'a word boundary': [{ pattern: 'a\\b' }, '$.pattern: \\b is not supported, at 1'],
  'an anchor within': [{ pattern: 'a^b' }, '$.pattern: ^ is only supported at the beginning, at 1'],
  'an unclosed group': [{ pattern: '(' }, '$.pattern: ( is not closed, at 0'],
  'too deep a schema': [nested(80), 'is nested more than 64 levels deep'],
  'too many properties': [{ properties: properties(5001) }, 'the schema is too complex: more than 5000 properties'],
  'too many required names': [
    { type: 'object', required: names(40_000) },
    'the schema is too complex: more than 250000 characters of names',
  ],
  'too many values': [{ enum: names(10_001) }, 'more than 10000 values of enum and const'],
  'values that are too long': [{ const: 'a'.repeat(300_000) }, 'more than 250000 characters of names'],
  'a name in a message': [{ properties: { ['a'.repeat(100_000)]: 7 } }, '…: is 7, expected a schema'],
  ...Object.fromEntries(
    Object.entries({
      not: { const: 1 },
      contains: {},
      uniqueItems: true,
      unevaluatedItems: false,
      $dynamicRef: '#a',
    }).map(([keyword, value]) => [
      keyword,
      [{ properties: { a: { [keyword]: value } } }, `$.properties.a.${keyword}: is not supported`],
    ]),
  ),
};

describe('a schema', () => {
  it.each(Object.entries(refusals))('with %s is rejected with its path', async (_, [schema, message]) => {
    const problem = await outcomeOf(ofSchema(schema));
    expect(problem).toContain(message);
    expect(problem.length).toBeLessThanOrEqual(500);
  });

  it.each<[string, unknown]>([
    ['500 optional properties', { type: 'object', properties: properties(500) }],
    ['a pattern of 60 long repetitions', { type: 'string', pattern: '[a-zA-Z0-9 ]{0,200} '.repeat(60) }],
    ['5000 required properties', { type: 'object', properties: properties(5000), required: names(5000) }],
    ['nested quantifiers', { pattern: '(([a-z]{1,40}){1,40}){1,10}' }],
    ['classes by the thousand', { pattern: '[ab]'.repeat(58_000) }],
    ['long lengths and lists', { type: 'array', items: { type: 'string', maxLength: 100_000 }, maxItems: 100_000 }],
    ['thousands of values', { enum: names(5000) }],
    ['a deep schema', nested(60)],
    ['properties of Unicode', { type: 'string', pattern: '^\\p{L}{1,40}$' }],
    ['unknown keywords and formats', { type: 'string', format: 'topic', nullable: true, 'x-a': 1, id: 'a', links: [] }],
    ['patternProperties', { type: 'object', patternProperties: { '^x-': { type: 'integer' } } }],
    ['keywords beside $ref', { $ref: '#/$defs/a', maxLength: 4, $defs: { a: { type: 'string' } } }],
    ['a length beside a pattern', { type: 'string', pattern: '^[a-z]+$', minLength: 2, maxLength: 4 }],
  ])('with %s is accepted', async (_, schema) => {
    expect(await outcomeOf(ofSchema(schema))).toBe('accepted');
  });
});

describe('a constraint that would take long to compile', () => {
  it.each<[string, TextConstraint, string]>([
    ['nested quantifiers of a format', ofSchema({ format: 'uuid', pattern: '^(?=.)([\\w-]+)+!$' }), 'lookahead'],
    ['repetitions of repetitions in a regex', regex('((((a{0,1000}){0,1000}){0,1000}){0,1000})'), 'too complex'],
    ['a huge repetition in a regex', regex('a{0,99999999}'), 'repeats more than 100000 times'],
    ['a huge repetition in EBNF', ebnf('root ::= "a"{0,99999999}'), 'repeats more than 100000 times'],
    ['repetitions without an end', ebnf(`root ::= "a"${'*'.repeat(5000)}`), 'repetitions of one another'],
    ['parentheses without an end', ebnf(`root ::= ${'('.repeat(50_000)}`), 'nested more than 100 deep'],
    ['groups without an end', regex('('.repeat(50_000)), 'nested more than 100 deep'],
    ['brackets without an end', ofSchema({ pattern: '['.repeat(99_900) }), '[ is not closed, at 0'],
    ['oneOf of many', ofSchema({ oneOf: Array.from({ length: 400 }, (_, at) => ({ required: names(at) })) }), 'oneOf'],
    ['more than a megabyte', ebnf(`root ::= "${'a'.repeat(1_200_000)}"`), 'expected at most 1000000'],
  ])('is rejected: %s', async (_, constraint, message) => {
    expect(await outcomeOf(constraint)).toContain(message);
  });
});

describe('a constraint', () => {
  it.each<[string, TextConstraint, string]>([
    ['EBNF of a missing rule', ebnf('root ::= "a" b'), 'EBNF: line 1, column 14: there is no rule "b"'],
    ['EBNF that breaks off', ebnf('root ::= "a"\nb ::= [a'), 'EBNF: line 2, column 7: a class is not closed'],
    ['EBNF without a root', ebnf('a ::= "a"'), 'the grammar has no rule "root"'],
    ['EBNF that never ends', ebnf('root ::= "a" root'), 'the grammar allows no text'],
    ['an unknown type', { type: 'nonsense' } as unknown as TextConstraint, 'it is no constraint'],
  ])('of %s is rejected, and the next is accepted', async (_, constraint, message) => {
    expect(await outcomeOf(constraint)).toContain(message);
    expect(await outcomeOf(ebnf('root ::= [a-zé一-鿿"\\]] "é中" [^"\\x7f]'))).toBe('accepted');
  });
});

/** Returns a constraint that takes longer than the limit of the checks below. */
const slow = (at: number) => ofSchema({ type: 'object', properties: properties(4000), title: `${at}` });

describe('owners', () => {
  it('take turns: the backlog of one owner delays another by at most two checks', async () => {
    const hurried = new GrammarChecks({ limitMs: 50 });
    await hurried.check(ofSchema(true), 'a');
    const ended: string[] = [];
    const all = [
      ...Array.from({ length: 6 }, (_, at) => ['attacker', slow(at)] as const),
      ['neighbor', ofSchema({ type: 'string' })] as const,
    ].map(([owner, constraint]) =>
      hurried.check(constraint, owner).then(
        () => ended.push(`${owner}: accepted`),
        () => ended.push(`${owner}: refused`),
      ),
    );
    await Promise.all(all);
    expect(ended.indexOf('neighbor: accepted')).toBeLessThanOrEqual(2);
    await hurried.dispose();
  });

  it('do not wait for the same constraint in the backlog of another owner', async () => {
    const hurried = new GrammarChecks({ limitMs: 50 });
    await hurried.check(ofSchema(true), 'a');
    const shared = ofSchema({ type: 'integer' });
    let refused = 0;
    const backlog = Array.from({ length: 6 }, (_, at) => hurried.check(slow(at), 'attacker').catch(() => refused++));
    const behind = hurried.check(shared, 'attacker');
    await hurried.check(shared, 'neighbor');
    expect(refused).toBeLessThanOrEqual(2);
    await Promise.all([...backlog, behind]);
    await hurried.dispose();
  });

  it('get a retryable overloaded error for more constraints than may wait', async () => {
    const hurried = new GrammarChecks();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 70 }, (_, at) => hurried.check(ofSchema({ const: at }), 'a')),
    );
    const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
    expect(errors.length).toBeGreaterThan(0);
    for (const error of errors) expect(error).toMatchObject({ code: 'overloaded' });
    await hurried.check(ofSchema({ const: 69 }), 'a');
    await hurried.dispose();
  });

  it('get the cached rejection of a slow constraint at once', async () => {
    const hurried = new GrammarChecks({ limitMs: 50 });
    const first = await outcomeOf(slow(0), hurried);
    expect(first).toBe('it is too complex: it takes longer than 0.05 s to compile');
    const before = process.cpuUsage();
    expect(await outcomeOf(slow(0), hurried)).toBe(first);
    expect(process.cpuUsage(before).user).toBeLessThan(200_000);
    await hurried.dispose();
  });
});
