import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { postJson, openTextApi } from '../testing/open-text-api.ts';
import { errorSchema } from '../http/error-response.ts';
import { checkJsonShape, findUnpairedSurrogate } from './parse-json.ts';

function check(text: string): void {
  checkJsonShape(new TextEncoder().encode(text));
}

it.each([
  ['200 levels in a body', '['.repeat(201) + ']'.repeat(201)],
  ['levels beside each other', `[${'[],'.repeat(10_000)}[]]`],
  ['brackets in strings', JSON.stringify({ prompt: '['.repeat(5000) })],
  ['escaped quotes', JSON.stringify({ prompt: `${'"\\'.repeat(300)}${'["'.repeat(300)}` })],
  ['a string that ends with an escaped backslash', `{"a":"\\\\","b":[${'[],'.repeat(10)}[]]}`],
  ['prompts of 128 Ki token ids', JSON.stringify({ prompt: Array.from({ length: 131_072 }, () => 50_000) })],
])('accepts %s', (_name, text) => {
  expect(() => check(text)).not.toThrow();
});

it.each([
  ['depth of arrays', '['.repeat(202), 'nested more than 200 levels'],
  ['depth of objects', '{"a":'.repeat(202), 'nested more than 200 levels'],
  ['depth behind strings with escapes', `{"a":"\\"\\\\","b":${'['.repeat(202)}`, 'nested more than 200 levels'],
  ['members of one object', `{${'"a":0,'.repeat(20_001)}`, 'more than 20000 members'],
  ['members of many objects', `[${'{"a":0},'.repeat(20_001)}`, 'more than 20000 members'],
  ['items', `[${'0,'.repeat(200_001)}`, 'more than 200000 items'],
])('rejects a body over its limit: %s', (_name, text, message) => {
  expect(() => check(text)).toThrow(message);
});

const expected = 'expected valid UTF-8 without unpaired surrogates';
const user = { role: 'user', content: 'hi' };

describe('rejects an unpaired surrogate in any field and stores nothing', () => {
  it.each<[string, object, string]>([
    ['/v1/predict', { prompt: 'a \ud83d' }, 'prompt'],
    ['/v1/predict', { prompt: 'a', stop: ['x', '\udc00'] }, 'stop.1'],
    ['/v1/predict', { model: 'tiny', prompt: 'a fox', negative_prompt: '\ude00\ud83d' }, 'negative_prompt'],
    ['/v1/chat/completions', { messages: [user, { role: 'us\ud83der', content: 'x' }] }, 'messages.1.role'],
    ['/v1/chat/completions', { messages: [{ ...user, content: 'a\ud83d' }] }, 'messages.0.content'],
    ['/v1/chat/completions', { messages: [{ ...user, name: 'Jo\udc00' }] }, 'messages.0.name'],
    ['/v1/responses', { input: 'a\ud800b' }, 'input'],
    ['/v1/responses', { input: 'a', metadata: { purpose: '\udfff' } }, 'metadata.purpose'],
    ['/v1/responses', { input: 'a', metadata: { '\udfff': 'x' } }, 'metadata'],
  ])('%s %j', async (path, body, param) => {
    const test = await openTextApi();
    const before = await allKeys(test.store);
    const response = await postJson(test, path, { model: 'writer', ...body });
    const { error } = errorSchema.parse(await response.json());
    expect(error).toMatchObject({ code: 'invalid_value', param, message: expect.stringContaining(expected) as string });
    expect([response.status, await allKeys(test.store)]).toEqual([400, before]);
  });
});

it('accepts surrogate pairs, escaped or not, and text that only looks like an escape', () => {
  for (const json of ['{"a": "\\ud83e\\udd8a"}', '{"a": "🦊"}', '{"a": "\\\\ud83e"}', '"\\ud83e"'])
    expect(findUnpairedSurrogate(json, JSON.parse(json))).toBeUndefined();
});

it('finds an unpaired surrogate at any depth', () => {
  const depth = 100_000;
  const json = `{"a":${'['.repeat(depth)}"\\ud83e"${']'.repeat(depth)}}`;
  expect(findUnpairedSurrogate(json, JSON.parse(json))?.field).toMatch(/^a(\.0){100000}$/);
});
