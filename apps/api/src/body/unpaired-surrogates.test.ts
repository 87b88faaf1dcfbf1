import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { postJson, openTextApi } from '../testing/open-text-api.ts';
import { errorSchema } from '../http/error-response.ts';
import { findUnpairedSurrogate } from './unpaired-surrogates.ts';

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
