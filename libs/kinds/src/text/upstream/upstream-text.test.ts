import { expect, it } from 'vitest';
import type { RequestOptions } from '../../request-fields.ts';
import { text } from '../text.ts';
import type { UpstreamTextCard, UpstreamTextInput } from './upstream-text.ts';

const card: UpstreamTextCard = {
  id: 'far-away',
  created: 1_700_000_000,
  ownedBy: 'others',
  kind: 'text',
  pipeline: 'openai',
  mode: 'autoregressive',
  hasChatTemplate: true,
  hasTools: false,
  deterministic: { is: false, reason: 'another server runs it' },
};
const options: RequestOptions = {
  timeoutS: { default: 600, max: 3600 },
  webhooks: { allowPrivate: false, progressIntervalMs: 1000 },
  drawSeed: () => 42,
  readAsset: () => Promise.reject(new Error('such a model has none')),
};

async function inputOf(body: object, of = card): Promise<UpstreamTextInput> {
  const result = await text.resolve(body, of, options);
  if (result.status === 'invalid') throw new Error(result.problems.map(({ message }) => message).join('; '));
  return result.request.input as UpstreamTextInput;
}

const messages = [{ role: 'user', content: 'something sweet for a party', name: 'ann' }];

it('is what was sent, without tokens and without defaults of ours', async () => {
  expect(await inputOf({ model: 'far-away', priority: 3, messages, top_k: 5, stop: ['x'] })).toEqual({
    asked: { messages, top_k: 5, stop: ['x'] },
    n: 1,
    seed: 42,
    maxTokens: 4096,
  });
  expect(await inputOf({ prompt: [5, 6], seed: 7, n: 2, max_tokens: 9, logprobs: true, top_logprobs: 3 })).toEqual({
    asked: { prompt: [5, 6], max_tokens: 9, logprobs: true, top_logprobs: 3 },
    n: 2,
    seed: 7,
    maxTokens: 9,
    logprobs: 3,
  });
  expect((await inputOf({ prompt: 'a' }, { ...card, maxModelTokens: 512 })).maxTokens).toBe(512);
});

it('takes a place for each text, and costs what its characters and its tokens come to', async () => {
  const demand = text.demandOf(await inputOf({ prompt: 'x'.repeat(400), n: 3, max_tokens: 10 }));
  expect(demand).toMatchObject({ shapeKey: 'text', outputs: 3, slots: 3, cost: 130 });
  expect(text.demandOf(await inputOf({ messages, max_tokens: 10 })).cost).toBe(17);
  expect(text.demandOf(await inputOf({ prompt: [1, 2, 3], max_tokens: 10 })).cost).toBe(13);
  expect(text.heaviestField(await inputOf({ prompt: 'x'.repeat(400), max_tokens: 10 }))).toBe('prompt');
  expect(text.heaviestField(await inputOf({ prompt: 'x', n: 2 }))).toBe('n');
});

it('keeps nothing private', async () => {
  const body = { messages, stop: 'secret', logit_bias: { 5: 1 }, temperature: 0.5, ignore_eos: true, max_tokens: 9 };
  const input = { ...(await inputOf(body)), said: { instructions: 'secret' }, shown: { store: true } };
  expect(text.withoutPrivate(input)).toEqual({
    asked: { temperature: 0.5, ignore_eos: true, max_tokens: 9 },
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
  ['both', { prompt: 'a', messages: [{ role: 'user', content: 'b' }] }, 'expected nothing beside prompt'],
  ['neither', {}, 'prompt is missing, expected text, or messages instead'],
  [
    'messages without a template',
    { messages },
    'expected nothing: far-away has no template for messages, send a prompt',
    { hasChatTemplate: false },
  ],
  [
    'ids beyond a vocabulary that is known',
    { prompt: [9] },
    'prompt.0 is 9, expected an id below 9',
    { vocabularySize: 9 },
  ],
])('is refused with %s', async (_name, body, problem, changes = {}) => {
  await expect(inputOf(body, { ...card, ...changes })).rejects.toThrow(problem);
});

it('shows of a model what is known, and of a request what was asked for', async () => {
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
