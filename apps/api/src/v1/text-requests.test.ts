/** Texts through the routes that every kind goes through; what is the same for all is tested with pictures. */
import { heartbeatWorker } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import type { TestApi } from '../testing/test-api.ts';
import { openTextApi, runNextText, textFacts, textModel } from '../testing/text-model.ts';
import { acceptedSchema, modelListSchema, textStatusSchema } from './api-schemas.ts';

const headers = { 'Content-Type': 'application/json' };
/** Four tokens. */
const prompt = [5, 6, 7, 8];

async function submit({ api }: TestApi, body: object, more: Record<string, string> = {}) {
  const sent = {
    method: 'POST',
    headers: { ...headers, ...more },
    body: JSON.stringify({ model: textModel, ...body }),
  };
  return acceptedSchema.parse(await (await api.request('/v1/predict', sent)).json());
}

async function poll({ api }: TestApi, id: string, more: Record<string, string> = {}) {
  return textStatusSchema.parse(await (await api.request(`/v1/predict/${id}`, { headers: more })).json());
}

async function heartbeat({ store }: TestApi, remainingCost: number): Promise<void> {
  // A token takes 100 to 200 ms, and the worker does ten at once.
  const pace = { costMs: { fast: 10, slow: 20 }, stepMs: { fast: 100, slow: 200 }, remainingCost };
  await heartbeatWorker(store, { model: textModel, workerId: 'w1', incarnation: 'first' }, { pace });
}

const as = (name: string) => ({ Authorization: `Bearer key-of-${name}` });

describe('a request of text', () => {
  it('costs its prompt and the tokens that are expected of it, and takes as much room', async () => {
    const test = await openTextApi('autoregressive');
    const { request_id: id } = await submit(test, { prompt, n: 3, max_tokens: 20 });
    const stored = await test.store.redis.get(test.store.keysOf(textModel).input(id));
    expect(JSON.parse(stored!)).toMatchObject({ kind: 'text', outputs: 3, cost: 4 + 3 * 20, slots: 3 * (4 + 20) });
  });

  it('has its tokens so far in polls, and what they became', async () => {
    const test = await openTextApi('autoregressive');
    const { request_id: id } = await submit(test, { prompt, n: 2, max_tokens: 20, seed: 7 });
    const queued = await poll(test, id);
    expect(queued).toMatchObject({ status: 'queued', tokens: 0, progress: 0, texts: [{ text: '' }, { text: '' }] });
    const run = await runNextText(test);
    const of = { done: 10, total: 40 };
    await run.entry({ type: 'delta', offset: 0, text: 'a fox', done: 10, of, facts: { ids: '7,8,' } });
    const running = await poll(test, id);
    expect(running).toMatchObject({ tokens: 10, progress: 0.25, texts: [{ text: 'a fox' }, { text: '' }], seed: 7 });
    for (const index of [0, 1])
      await run.output(
        index,
        Buffer.from('a fox'),
        100,
        textFacts({ finish_reason: 'stop', completion_tokens: 11, calls: 11 }),
      );
    await run.finish();
    expect(await poll(test, id)).toMatchObject({
      status: 'succeeded',
      tokens: 22,
      progress: 1,
      finish_reasons: ['stop', 'stop'],
      usage: { prompt_tokens: 3, completion_tokens: 22, total_tokens: 25, cached_tokens: 0, nfe: 22 },
      parameters: { prompt, n: 2, max_tokens: 20, seed: 7 },
    });
  });

  it('keeps no prompt after its end where prompts are not to be kept, nor what tells of it', async () => {
    const test = await openTextApi('autoregressive', { config: { storePrompts: false } });
    const body = { prompt, stop: ['the end'], logit_bias: { 9: 1 } };
    const { request_id: id } = await submit(test, body);
    await (await runNextText(test)).finish({ state: 'canceled' });
    const { parameters } = await poll(test, id);
    expect(parameters).toMatchObject({ prompt: null, stop: [], logit_bias: {} });
  });

  it('says when it will have ended, token by token, and after all that is ahead of it', async () => {
    let nowMs = Date.now();
    const test = await openTextApi('autoregressive', { clock: { now: () => nowMs } });
    await heartbeat(test, 0);
    nowMs += 2000;
    const first = await submit(test, { prompt, max_tokens: 20 });
    // Its own 20 tokens.
    expect(first).toMatchObject({ queue_position: 0, eta_seconds: { min: 2 } });
    for (let count = 0; count < 9; count++) await submit(test, { prompt, max_tokens: 20 });
    const last = await submit(test, { prompt, max_tokens: 20 });
    // Eleven of 24 units, at 10 ms each.
    expect(last).toMatchObject({ queue_position: 10, eta_seconds: { min: 2.6 } });
    const run = await runNextText(test);
    await run.entry({ type: 'delta', offset: 0, text: 'a', done: 15, of: { done: 15, total: 20 } });
    expect((await poll(test, first.request_id)).eta_seconds).toEqual({ min: 0.5, max: 1 });
  });

  it('counts for the share of its owner by what it costs', async () => {
    const plain = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
    const apiKeys = new Map(['alice', 'bob'].map((name) => [hashKey(`key-of-${name}`), { ...plain, name }]));
    const test = await openTextApi('autoregressive', { apiKeys });
    await submit(test, { prompt, max_tokens: 200 }, as('alice'));
    const { request_id: id } = await submit(test, { prompt, max_tokens: 200 }, as('alice'));
    for (let count = 0; count < 8; count++) await submit(test, { prompt, max_tokens: 10 }, as('bob'));
    // All eight of bob's are less than the first of alice's.
    expect((await poll(test, id, as('alice'))).queue_position).toBe(9);
    const last = await submit(test, { prompt, max_tokens: 1, priority: 1 }, as('alice'));
    expect(last.queue_position).toBe(0);
  });
});

it('a list of models holds both kinds, each as the document says', async () => {
  const test = await openTextApi('block_diffusion');
  const { data } = modelListSchema.parse(await (await test.api.request('/v1/models')).json());
  expect(data.map(({ id, kind }) => [id, kind])).toEqual([
    ['tiny', 'picture'],
    [textModel, 'text'],
  ]);
});
