/** The input of a response: its items and its number of tokens. */
import { describe, expect, it } from 'vitest';
import { finish, input, openResponse, responsesPath, problemOf, viewOf } from '../testing/open-response.ts';
import { postJson, openCallerApi, openTextApi, writeTokens, writer } from '../testing/open-text-api.ts';

const conversation = [
  { role: 'developer', content: 'Be short.' },
  { role: 'user', content: [{ type: 'input_text', text: 'a fox' }] },
  { type: 'function_call', call_id: 'call_1', name: 'draw', arguments: '{"color": "red"}' },
  { type: 'function_call_output', call_id: 'call_1', output: 'done' },
  { role: 'user', content: 'and a dog' },
];
const listed = [
  { type: 'message', role: 'system', status: 'completed', content: [{ type: 'input_text', text: 'Be short.' }] },
  { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'a fox' }] },
  { type: 'function_call', call_id: 'call_1', name: 'draw', arguments: '{"color": "red"}' },
  { type: 'function_call_output', call_id: 'call_1', output: 'done' },
  { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'and a dog' }] },
];
const tools = [{ type: 'function', name: 'draw', parameters: { type: 'object', properties: {} } }];

interface Page {
  data: { id: string }[];
  has_more: boolean;
  last_id: string | null;
}

describe('input_items', () => {
  it('lists messages, calls and their results in pages, in either order', async () => {
    const test = await openCallerApi();
    const body = { model: 'caller', input: conversation, tools, background: true };
    const { id } = await viewOf(await postJson(test, responsesPath, body));
    const pageOf = async (query: string) =>
      (await (await test.api.request(`${responsesPath}/${id}/input_items${query}`)).json()) as Page;
    expect(await pageOf('?order=asc')).toMatchObject({ object: 'list', data: listed, has_more: false });
    const all = await pageOf('');
    expect(all.data).toMatchObject(listed.toReversed());
    const first = await pageOf('?limit=2');
    expect(first).toEqual({ ...all, data: all.data.slice(0, 2), last_id: all.data[1]!.id, has_more: true });
    expect((await pageOf(`?limit=100&after=${first.last_id}`)).data).toEqual(all.data.slice(2));
    expect(await pageOf(`?after=${all.last_id}`)).toMatchObject({ data: [], first_id: null, has_more: false });
  });

  it('contains the messages of previous responses', async () => {
    const { test, view, run } = await openResponse();
    await writeTokens(run, ['a penguin']);
    await finish(run, 'a penguin');
    const next = await viewOf(
      await postJson(test, responsesPath, { input: 'make it blue', background: true, previous_response_id: view.id }),
    );
    const page = (await (await test.api.request(`${responsesPath}/${next.id}/input_items?order=asc`)).json()) as Page;
    expect(page.data).toMatchObject([
      { role: 'user', content: [{ text: input }] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'a penguin' }] },
      { role: 'user', content: [{ text: 'make it blue' }] },
    ]);
  });

  it.each([
    ['?limit=0', 'limit'],
    ['?limit=101', 'limit'],
    ['?limit=x', 'limit'],
    ['?order=up', 'order'],
    ['?after=msg_1', 'after'],
  ])('rejects %s', async (query, param) => {
    const { test, url } = await openResponse();
    const response = await test.api.request(`${url}/input_items${query}`);
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }]);
  });

  it('returns 410 after the end if the server does not store prompts', async () => {
    const { test, url, run } = await openResponse({}, { config: { storePrompts: false } });
    await writeTokens(run, ['a penguin']);
    await finish(run, 'a penguin');
    const response = await test.api.request(`${url}/input_items`);
    expect([response.status, await response.json()]).toMatchObject([410, { error: { code: 'input_gone' } }]);
    expect((await test.api.request(`${responsesPath}/resp_x/input_items`)).status).toBe(404);
  });
});

describe('input_tokens', () => {
  it('counts the input tokens, and stores nothing', async () => {
    const test = await openTextApi();
    const body = { model: writer.id, input, instructions: 'Be short.' };
    const counted = await postJson(test, `${responsesPath}/input_tokens`, body);
    const { input_tokens: tokens } = (await counted.json()) as { input_tokens: number };
    expect(await test.store.redis.zcard(test.store.keysOf(writer.id).waiting)).toBe(0);
    const { id } = await viewOf(await postJson(test, responsesPath, { ...body, background: true }));
    const stored = await test.api.request(`/v1/predict/${id.replace('resp_', '')}`);
    const { parameters } = (await stored.json()) as { parameters: { prompt: number[] } };
    expect(tokens).toBe(parameters.prompt.length);
  });

  it('validates the input like POST /v1/responses', async () => {
    const test = await openTextApi();
    for (const wrong of ['', 'cold '.repeat(300)]) {
      const [status, field] = await problemOf(test, { input: wrong }, `${responsesPath}/input_tokens`);
      expect([status, field]).toEqual([400, 'input']);
    }
  });
});
