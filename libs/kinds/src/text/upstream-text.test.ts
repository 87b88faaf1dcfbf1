import { requestPolicy, upstreamTextCard } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { text } from './text.ts';
import type { UpstreamTextCard, UpstreamTextInput } from './upstream-text.ts';

const card = { ...upstreamTextCard, hasTools: false };
const options = requestPolicy;

async function inputOf(body: object, of = card): Promise<UpstreamTextInput> {
  const result = await text.resolve(body, of, options);
  if (result.status === 'invalid') throw new Error(result.problems.map(({ message }) => message).join('; '));
  return result.request.input as UpstreamTextInput;
}

const messages = [{ role: 'user', content: 'something sweet for a party', name: 'ann' }];

it('keeps the fields as sent, without token ids and without our defaults', async () => {
  expect(await inputOf({ model: 'far-away', priority: 3, messages, top_k: 5, stop: ['x'] })).toEqual({
    params: { messages, top_k: 5, stop: ['x'] },
    n: 1,
    seed: 42,
    maxTokens: 4096,
  });
  expect(await inputOf({ prompt: [5, 6], seed: 7, n: 2, max_tokens: 9, logprobs: true, top_logprobs: 3 })).toEqual({
    params: { prompt: [5, 6], max_tokens: 9, logprobs: true, top_logprobs: 3 },
    n: 2,
    seed: 7,
    maxTokens: 9,
    logprobs: 3,
  });
  expect((await inputOf({ prompt: 'a' }, { ...card, maxModelTokens: 512 })).maxTokens).toBe(512);
});

it('takes one slot per text, and estimates its cost from characters and max_tokens', async () => {
  const demand = text.demandOf(await inputOf({ prompt: 'x'.repeat(400), n: 3, max_tokens: 10 }));
  expect(demand).toMatchObject({ shapeKey: 'text', outputs: 3, slots: 3, cost: 130 });
  expect(text.demandOf(await inputOf({ messages, max_tokens: 10 })).cost).toBe(17);
  expect(text.demandOf(await inputOf({ prompt: [1, 2, 3], max_tokens: 10 })).cost).toBe(13);
});

it('removes private fields if prompts are not retained', async () => {
  const body = { messages, stop: 'secret', logit_bias: { 5: 1 }, temperature: 0.5, ignore_eos: true, max_tokens: 9 };
  const input = { ...(await inputOf(body)), said: { instructions: 'secret' }, shown: { store: true } };
  expect(text.withoutPrivate(input)).toEqual({
    params: { temperature: 0.5, ignore_eos: true, max_tokens: 9 },
    n: 1,
    seed: 42,
    maxTokens: 9,
    shown: { store: true },
  });
});

it.each<[string, object, string, Partial<UpstreamTextCard>?]>([
  [
    'blocks',
    { prompt: 'a', max_nfe: 3 },
    'max_nfe is 3, expected nothing: far-away writes token by token, and has no blocks',
  ],
  [
    'both prompt and messages',
    { prompt: 'a', messages: [{ role: 'user', content: 'b' }] },
    'expected nothing beside prompt',
  ],
  ['neither prompt nor messages', {}, 'prompt is missing, expected text, or messages instead'],
  [
    'messages without a template',
    { messages },
    'expected nothing: far-away has no template for messages, send a prompt',
    { hasChatTemplate: false },
  ],
  ['ids beyond a known vocabulary', { prompt: [9] }, 'prompt.0 is 9, expected an id below 9', { vocabularySize: 9 }],
])('rejects %s', async (_name, body, problem, changes = {}) => {
  await expect(inputOf(body, { ...card, ...changes })).rejects.toThrow(problem);
});

it('shows the known fields of a model, and the sent fields of a request', async () => {
  expect(text.modelView(card)).toEqual({
    mode: 'autoregressive',
    has_chat_template: true,
    has_tools: false,
    deterministic: false,
    deterministic_reason: 'another server runs it',
  });
  expect(text.modelView({ ...card, maxModelTokens: 512 })).toMatchObject({ max_model_len: 512 });
  const input = await inputOf({ messages, max_tokens: 9, temperature: 0.5 });
  const status = { state: 'running', done: 3, input, model: 'far-away', outputs: [] };
  expect(text.requestView(status as never, ['a'])).toMatchObject({
    tokens: 3,
    progress: 1 / 3,
    seed: 42,
    parameters: { model: 'far-away', messages, prompt: null, max_tokens: 9, temperature: 0.5, n: 1, seed: 42 },
  });
});
