/** Text requests on the kind-neutral routes; shared behavior is tested with images. */
import { heartbeatWorker } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import type { TestApi } from '../testing/test-api.ts';
import { openImageAndTextApi, runNextText, textFacts, textModel } from '../testing/text-model.ts';
import { acceptedSchema, modelListSchema, textStatusSchema } from '../openapi/api-schemas.ts';

const headers = { 'Content-Type': 'application/json' };
/** Prompt of four tokens. */
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
  // A token takes 100 to 200 ms, and the worker runs ten rows at once.
  const pace = { costMs: { fast: 10, slow: 20 }, stepMs: { fast: 100, slow: 200 }, remainingCost };
  await heartbeatWorker(store, { shard: textModel, workerId: 'w1', incarnation: 'first' }, { pace });
}

const as = (name: string) => ({ Authorization: `Bearer key-of-${name}` });

describe('a request of text', () => {
  it('has the cost and slots of its prompt and its max_tokens', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const { request_id: id } = await submit(test, { prompt, n: 3, max_tokens: 20 });
    const stored = await test.store.redis.get(test.store.keysOf(textModel).input(id));
    expect(JSON.parse(stored!)).toMatchObject({ kind: 'text', outputs: 3, cost: 4 + 3 * 20, slots: 3 * (4 + 20) });
  });

  it.each(['queued', 'running', 'canceled'] as const)('shows usage in polls while it is %s', async (state) => {
    const test = await openImageAndTextApi('autoregressive');
    const { request_id: id } = await submit(test, { prompt, max_tokens: 20 });
    if (state !== 'queued') {
      const run = await runNextText(test);
      const of = { done: 5, total: 20 };
      await run.entry({ type: 'delta', offset: 0, text: 'a fox', done: 5, of, facts: { ids: '7,8,9,10,11,' } });
      if (state === 'canceled') {
        await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
        await run.finish({ state });
      }
    }
    const written = state === 'queued' ? 0 : 5;
    expect(await poll(test, id)).toMatchObject({
      status: state,
      tokens: written,
      usage: { prompt_tokens: 4, completion_tokens: written, total_tokens: 4 + written },
    });
  });

  it('counts the tokens of a prompt that is no longer stored', async () => {
    const test = await openImageAndTextApi('autoregressive', { config: { storePrompts: false } });
    const { request_id: id } = await submit(test, { prompt });
    await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
    expect(await poll(test, id)).toMatchObject({ parameters: { prompt: null }, usage: { prompt_tokens: 4 } });
  });

  it('accepts user and metadata of OpenAI clients, and stores neither', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const more = { user: 'somebody-7', metadata: { trace: 'abc-7' } };
    for (const body of [
      { model: textModel, prompt, ...more },
      { model: 'tiny', prompt: 'a fox', ...more },
    ]) {
      const { request_id: id } = await submit(test, body);
      const stored = await test.store.redis.get(test.store.keysOf(body.model).input(id));
      expect(stored).not.toMatch(/somebody-7|abc-7|metadata/);
    }
  });

  it.each([
    [{ model: textModel, prompt, size: '64x64' }, 'size', 'text models, such as writer; it is a field of image'],
    [{ model: textModel, prompt, mask: 'x' }, 'mask', 'text models, such as writer; it is a field of image'],
    [
      { model: 'tiny', prompt: 'a fox', max_tokens: 5 },
      'max_tokens',
      'image models, such as tiny; it is a field of text',
    ],
    [{ model: 'tiny', prompt: 'a fox', messages: [] }, 'messages', 'image models, such as tiny; it is a field of text'],
  ])('%j: the error names the kind of model', async (body, field, message) => {
    const test = await openImageAndTextApi('autoregressive');
    const response = await test.post(body);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: field, code: 'unknown_field', message: `${field} is not a field of ${message} models` } },
    ]);
  });

  it('shows its tokens and text so far in polls', async () => {
    const test = await openImageAndTextApi('autoregressive');
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

  it('stores neither prompt nor derived fields after its end if STORE_PROMPTS is off', async () => {
    const test = await openImageAndTextApi('autoregressive', { config: { storePrompts: false } });
    const body = { prompt, stop: ['the end'], logit_bias: { 9: 1 } };
    const { request_id: id } = await submit(test, body);
    await (await runNextText(test)).finish({ state: 'canceled' });
    const { parameters } = await poll(test, id);
    expect(parameters).toMatchObject({ prompt: null, stop: [], logit_bias: {} });
  });

  it('computes eta_seconds from its own tokens and the cost ahead', async () => {
    let nowMs = Date.now();
    const test = await openImageAndTextApi('autoregressive', { clock: { now: () => nowMs } });
    await heartbeat(test, 0);
    nowMs += 2000;
    const first = await submit(test, { prompt, max_tokens: 20 });
    // 20 tokens of its own.
    expect(first).toMatchObject({ queue_position: 0, eta_seconds: { min: 2 } });
    for (let count = 0; count < 9; count++) await submit(test, { prompt, max_tokens: 20 });
    const last = await submit(test, { prompt, max_tokens: 20 });
    // Eleven requests of 24 units, at 10 ms per unit.
    expect(last).toMatchObject({ queue_position: 10, eta_seconds: { min: 2.6 } });
    const run = await runNextText(test);
    await run.entry({ type: 'delta', offset: 0, text: 'a', done: 15, of: { done: 15, total: 20 } });
    expect((await poll(test, first.request_id)).eta_seconds).toEqual({ min: 0.5, max: 1 });
  });

  it('counts its cost against the fair share of its owner', async () => {
    const plain = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
    const apiKeys = new Map(['alice', 'bob'].map((name) => [hashKey(`key-of-${name}`), { ...plain, name }]));
    const test = await openImageAndTextApi('autoregressive', { apiKeys });
    await submit(test, { prompt, max_tokens: 200 }, as('alice'));
    const { request_id: id } = await submit(test, { prompt, max_tokens: 200 }, as('alice'));
    for (let count = 0; count < 8; count++) await submit(test, { prompt, max_tokens: 10 }, as('bob'));
    // All eight requests of bob cost less than the first of alice.
    expect((await poll(test, id, as('alice'))).queue_position).toBe(9);
    const last = await submit(test, { prompt, max_tokens: 1, priority: 1 }, as('alice'));
    expect(last.queue_position).toBe(0);
  });
});

it('/v1/models lists both kinds in the documented schema', async () => {
  const test = await openImageAndTextApi('block_diffusion');
  const { data } = modelListSchema.parse(await (await test.api.request('/v1/models')).json());
  expect(data.map(({ id, kind }) => [id, kind])).toEqual([
    ['tiny', 'image'],
    [textModel, 'text'],
  ]);
});
