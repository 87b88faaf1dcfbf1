import { expect, it } from 'vitest';
import { ApiError } from '../../http/api-error.ts';
import { parseResponsesBody } from '../../responses/responses-schema.ts';
import { parseChatBody } from './chat-completions.ts';
import { parseCompletionBody } from './completions.ts';
import { refusedFields } from './peer-fields.ts';

const messages = [{ role: 'user', content: 'hi' }];
const routes = {
  chat: (fields: object) => parseChatBody({ messages, ...fields }).body,
  completions: (fields: object) => parseCompletionBody({ prompt: 'a', ...fields }).body,
  responses: (fields: object) => parseResponsesBody({ input: 'a', ...fields }).rest,
};
const allRoutes = Object.entries(routes);

/** Returns the fields that `parse` reports as wrong. */
function problemsOf(parse: () => unknown): (string | undefined)[] {
  try {
    parse();
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.problems.map(({ field }) => field);
    throw error;
  }
  return [];
}

const schema = { type: 'object', properties: { a: { type: 'integer' } } };
const ofSchema = { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } };
const anyObject = { response_format: { type: 'json_object' } };
const foxes = { grammar: 'root ::= "red fox" | "a \\"b\\" \\\\ \\n"' };
const choices = ['red fox', 'a "b" \\ \n'];

/** Output formats in the fields of other servers, and in ours. */
const forms: readonly [body: object, ours: object][] = [
  [{ response_format: { type: 'json_object', schema } }, ofSchema],
  [{ response_format: { type: 'json_schema', schema } }, ofSchema],
  [{ response_format: { type: 'json', value: schema } }, ofSchema],
  [{ response_format: { type: 'json', json_schema: { name: 'x', schema } } }, ofSchema],
  [{ response_format: { type: 'json_object', json_schema: schema } }, ofSchema],
  [{ response_format: { type: 'json_object', json_schema: { name: 'x', schema } } }, ofSchema],
  [{ response_format: { type: 'json_object' } }, anyObject],
  [{ response_format: { type: 'regex', pattern: 'a+' } }, { regex: 'a+' }],
  [{ response_format: { type: 'regex', value: 'a+' } }, { regex: 'a+' }],
  [{ response_format: { type: 'grammar', grammar: 'root ::= "a"' } }, { grammar: 'root ::= "a"' }],
  [{ json_schema: schema }, ofSchema],
  [{ json_schema: JSON.stringify(schema) }, ofSchema],
  [{ guided_json: schema }, ofSchema],
  [{ guided_json: JSON.stringify(schema) }, ofSchema],
  [{ guided_json_object: true }, anyObject],
  [{ guided_regex: 'a+' }, { regex: 'a+' }],
  [{ guided_choice: choices }, foxes],
  [{ guided_grammar: 'root ::= "a"' }, { grammar: 'root ::= "a"' }],
  [{ structured_outputs: { json: schema } }, ofSchema],
  [{ structured_outputs: { json: null, regex: 'a+', disable_any_whitespace: true } }, { regex: 'a+' }],
  [{ structured_outputs: { choice: choices } }, foxes],
  [{ structured_outputs: { grammar: 'root ::= "a"' } }, { grammar: 'root ::= "a"' }],
  [{ structured_outputs: { json_object: true } }, anyObject],
  [{ regex: 'a+' }, { regex: 'a+' }],
  [{ ebnf: 'root ::= "a"' }, { grammar: 'root ::= "a"' }],
  [{ grammar: 'root ::= "a"' }, { grammar: 'root ::= "a"' }],
  [{ response_format: { type: 'text' }, guided_regex: 'a+' }, { regex: 'a+' }],
  [{ guided_json: null, structured_outputs: null, guided_regex: 'a+' }, { regex: 'a+' }],
];

it.each(forms)('converts %j', (body, ours) => {
  expect(routes.chat(body)).toEqual({ messages, ...ours });
  expect(routes.completions(body)).toEqual({ prompt: 'a', ...ours });
});

it('converts json_object with a schema in text.format of responses', () => {
  const json_schema = { name: 'answer', schema };
  expect(routes.responses({ text: { format: { type: 'json_object', schema } } })).toEqual({
    response_format: { type: 'json_schema', json_schema },
  });
});

it.each<[body: object, fields: string[]]>([
  [{ guided_json: schema, guided_regex: 'a' }, ['guided_regex']],
  [{ response_format: { type: 'json_object' }, guided_choice: ['a'] }, ['guided_choice']],
  [{ structured_outputs: { json: schema, regex: 'a' } }, ['structured_outputs.regex']],
  [{ grammar: 'root ::= "a"', regex: 'a' }, ['grammar']],
  [{ structured_outputs: { structural_tag: '{}' } }, ['structured_outputs.structural_tag']],
  [{ structured_outputs: 'json' }, ['structured_outputs']],
  [{ response_format: { type: 'text', schema } }, ['response_format.schema']],
  [{ response_format: { type: 'json_object', pattern: 'a' } }, ['response_format.pattern']],
  [{ response_format: { type: 'json_object', schema, grammar: 'root ::= "a"' } }, ['response_format.grammar']],
  [
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema }, schema } },
    ['response_format.schema'],
  ],
  [{ text: { format: { type: 'json_object' } } }, ['text']],
  [{ extra_body: { guided_json: schema } }, ['extra_body']],
  [{ guided_json: 'no JSON' }, ['guided_json']],
  [{ guided_choice: [] }, ['guided_choice']],
  [{ guided_choice: [7] }, ['guided_choice']],
])('rejects %j', (body, fields) => {
  expect(problemsOf(() => routes.chat(body))).toEqual(fields);
  expect(problemsOf(() => routes.completions(body))).toEqual(fields);
});

it('names both fields if two output formats are given', () => {
  expect(() => routes.chat({ guided_json: schema, guided_regex: 'a' })).toThrow(
    'guided_regex is given together with guided_json, expected one output format',
  );
});

it("reports schema errors under the client's field name", () => {
  const { names } = parseChatBody({ messages, guided_json: schema });
  expect(names).toEqual({ 'response_format.json_schema.schema': 'guided_json', response_format: 'guided_json' });
  expect(parseChatBody({ messages, structured_outputs: { regex: 'a' } }).names).toEqual({
    regex: 'structured_outputs.regex',
  });
});

it.each(Object.entries(refusedFields))('rejects %s, except for values without effect', (field, { accepted }) => {
  for (const [, parse] of allRoutes) {
    expect(problemsOf(() => parse({ [field]: 'something else' }))).toEqual([field]);
    expect(problemsOf(() => parse({ [field]: null }))).toEqual([]);
    for (const value of accepted) expect(problemsOf(() => parse({ [field]: value }))).toEqual([]);
  }
});

const harmless = [
  'user',
  'store',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'cache_prompt',
  'id_slot',
  'guided_decoding_backend',
  'cache_salt',
  'request_id',
  'rid',
  'separate_reasoning',
  'keep_alive',
  'provider',
];

it.each(harmless)('ignores %s, which changes no answer', (field) => {
  for (const value of ['x', true, 1])
    for (const parse of [routes.chat, routes.completions])
      expect(problemsOf(() => parse({ [field]: value }))).toEqual([]);
});

it('rejects chat fields in completions and completion fields in chat', () => {
  expect(problemsOf(() => routes.chat({ echo: true, suffix: 'x', best_of: 2 }))).toEqual(['echo', 'suffix', 'best_of']);
  expect(problemsOf(() => routes.chat({ echo: false, suffix: '', best_of: 1 }))).toEqual([]);
  expect(problemsOf(() => routes.completions({ tools: [{}], messages }))).toEqual(['tools', 'messages']);
  expect(problemsOf(() => routes.completions({ tools: [], tool_choice: 'none' }))).toEqual([]);
});

it.each(['guided_json', 'structured_outputs', 'json_schema', 'ebnf', 'response_format'])(
  'rejects %s in responses and names text.format instead',
  (field) => expect(() => routes.responses({ [field]: { type: 'x' } })).toThrow('expected nothing: send text.format'),
);
