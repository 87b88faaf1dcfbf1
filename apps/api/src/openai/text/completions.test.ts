import { timeOfRequestId } from '@darkroom/core';
import { readRequest } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { errorSchema } from '../../http/error-response.ts';
import { runNext } from '../../testing/fake-worker.ts';
import { postJson, end, logprobOf, openTextApi, writeTokens, writer } from '../../testing/open-text-api.ts';
import { readFrames } from '../../testing/sse-reader.ts';
import { completionAnswerSchema } from './completions.ts';

const path = '/v1/completions';
const prompt = 'a bird on a ';

/** Sends a request and leases it. */
async function open(body: object = {}) {
  const test = await openTextApi();
  const answer = Promise.resolve(postJson(test, path, { prompt, ...body }));
  await expect.poll(() => test.timers()).toBe(3);
  const [id] = await test.store.redis.zrange(test.store.keysOf(writer.id).waiting, 0, '-1');
  const { input } = ((await readRequest(test.store, id!)) as { request: { input: object } }).request;
  return { test, answer, id: id!, input, run: await runNext(test.store, writer.id) };
}

const other = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] });
const tokens = [
  logprobOf('bl', -0.25, [other('bl', -0.25), other('r', -2)]),
  // The sampled token is not among the most probable ones.
  logprobOf('ue', -3, [other('ack', -0.125)]),
];
const expectedLogprobs = {
  tokens: ['bl', 'ue'],
  token_logprobs: [-0.25, -3],
  top_logprobs: [
    { bl: -0.25, r: -2 },
    { ack: -0.125, ue: -3 },
  ],
  text_offset: [0, 2],
};
/** Returns the expected logprobs of one token. */
function part(at: number): object {
  return Object.fromEntries(Object.entries(expectedLogprobs).map(([name, values]) => [name, values.slice(at, at + 1)]));
}

it("answers with the text, and with logprobs in this route's format", async () => {
  const { answer, id, run } = await open({ logprobs: 2 });
  await writeTokens(run, tokens);
  await end(run, 'blue', { finish_reason: 'length' });
  await run.finish();
  const response = await answer;
  expect([response.status, response.headers.get('x-request-id')]).toEqual([200, id]);
  expect(completionAnswerSchema.parse(await response.json())).toEqual({
    id: `cmpl-${id}`,
    object: 'text_completion',
    created: Math.floor(timeOfRequestId(id) / 1000),
    model: writer.id,
    choices: [{ index: 0, text: 'blue', logprobs: expectedLogprobs, finish_reason: 'length' }],
    usage: {
      prompt_tokens: 7,
      completion_tokens: 3,
      total_tokens: 10,
      prompt_tokens_details: { cached_tokens: 0 },
      nfe: 3,
    },
  });
});

it('streams each chunk, with the offsets of its tokens in the full text', async () => {
  const { answer, id, run } = await open({ logprobs: 2, stream: true, stream_options: { include_usage: true } });
  await writeTokens(run, tokens);
  await end(run, 'blue');
  await run.finish();
  const frames = await readFrames(await answer).rest();
  expect(frames.pop()).toEqual({ data: '[DONE]' });
  const chunks = frames.map(({ data }) => JSON.parse(data!) as Record<string, unknown>);
  expect(chunks[0]).toMatchObject({ id: `cmpl-${id}`, object: 'text_completion', model: writer.id, usage: null });
  expect(chunks.map(({ choices }) => choices)).toEqual([
    [{ index: 0, text: 'bl', logprobs: part(0), finish_reason: null }],
    [{ index: 0, text: 'ue', logprobs: part(1), finish_reason: null }],
    [{ index: 0, text: '', logprobs: null, finish_reason: 'stop' }],
    [],
  ]);
  expect(chunks.at(-1)).toMatchObject({ usage: { total_tokens: 10 } });
});

it('returns text_offset of each token, also for several per chunk, partial characters and tokens without text', async () => {
  const moon = [...Buffer.from('🌙')];
  const four = ['a ', 'red ', '🌙', '🌙', '<|im_end|>', '!'].map((token) => logprobOf(token, -1));
  four[2] = { ...four[2]!, bytes: moon.slice(0, 2) };
  four[3] = { ...four[3]!, bytes: moon.slice(2) };
  const offsets = [0, 2, 6, 6, 8, 8];
  const whole = await open({ logprobs: 0 });
  const streamed = await open({ logprobs: 0, stream: true });
  for (const { run } of [whole, streamed]) {
    const logprobs = four.map((token) => `${JSON.stringify(token)}\n`).join('');
    await run.entry({ type: 'delta', offset: 0, text: 'a red 🌙!', facts: { ids: '5,6,7,8,9,10,', logprobs } });
    await end(run, 'a red 🌙!');
    await run.finish();
  }
  const { choices } = completionAnswerSchema.parse(await (await whole.answer).json());
  expect(choices[0]!.logprobs!.text_offset).toEqual(offsets);
  const [frame] = await readFrames(await streamed.answer).rest();
  expect(JSON.parse(frame!.data!)).toMatchObject({ choices: [{ logprobs: { text_offset: offsets } }] });
});

it.each<[object, object]>([
  [{ prompt: [5, 6, 7] }, { prompt: [5, 6, 7] }],
  [{ prompt: [[5, 6, 7]] }, { prompt: [5, 6, 7] }],
  [{ n: 2, best_of: 2, echo: false, suffix: null, logprobs: null }, { n: 2 }],
  [{ logprobs: 0 }, { logprobs: 0 }],
  [
    { best_of: 1, user: { any: 'thing' }, of_tomorrow: 1 },
    { n: 1, maxTokens: 24 },
  ],
])('accepts %j', async (body, input) => {
  const opened = await open(body);
  expect(opened.input).toMatchObject(input);
});

it('treats a list of one prompt as the prompt', async () => {
  const { input } = await open({ prompt: [prompt] });
  expect(input).toEqual((await open()).input);
});

it.each([
  [{}, ''],
  [{ echo: true }, prompt],
])('answers max_tokens 0 with no text except the echo: %j', async (more, text) => {
  const test = await openTextApi();
  const asking = postJson(test, path, { model: writer.id, prompt, max_tokens: 0, ...more });
  await expect.poll(() => test.store.redis.zcard(test.store.keysOf(writer.id).waiting)).toBe(1);
  const run = await runNext(test.store, writer.id);
  await end(run, ' a', { finish_reason: 'stop' });
  await run.finish();
  expect(await (await asking).json()).toMatchObject({
    choices: [{ text, logprobs: null, finish_reason: 'length' }],
    usage: { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7 },
  });
});

it.each([false, true])('answers several prompts, each with its echo, streaming: %s', async (stream) => {
  const test = await openTextApi();
  const body = { model: writer.id, prompt: ['a fox', 'a cat'], echo: true, n: 2, stream };
  const options = stream ? { stream_options: { include_usage: true } } : {};
  const asking = postJson(test, path, { ...body, ...options });
  await expect.poll(() => test.store.redis.zcard(test.store.keysOf(writer.id).waiting)).toBe(2);
  for (const word of ['one', 'two']) {
    const run = await runNext(test.store, writer.id);
    for (const index of [0, 1]) await end(run, ` ${word} ${index}`, { index });
    await run.finish();
  }
  const answer = await asking;
  expect(answer.status).toBe(200);
  const frames = stream ? await readFrames(answer).rest() : [];
  const chunks = frames
    .slice(0, -1)
    .map(({ data }) => JSON.parse(data!) as { choices: object[]; usage: object | null });
  const { choices, usage } = stream
    ? { choices: chunks.flatMap((chunk) => chunk.choices), usage: chunks.at(-1)!.usage }
    : ((await answer.json()) as { choices: object[]; usage: object });
  const texts = (choices as { index: number; text: string }[]).map(({ index, text }) => [
    index,
    text.slice(0, 5),
    text.slice(-2),
  ]);
  expect(texts).toEqual([
    [0, 'a fox', ' 0'],
    [1, 'a fox', ' 1'],
    [2, 'a cat', ' 0'],
    [3, 'a cat', ' 1'],
  ]);
  expect(usage).toMatchObject({ prompt_tokens: 14, completion_tokens: 12 });
});

it('cancels the stored requests of several prompts if one of them is rejected', async () => {
  const test = await openTextApi();
  const answer = await postJson(test, path, { model: writer.id, prompt: ['cold '.repeat(300), 'a cat', 'a dog'] });
  expect(answer.status).toBe(400);
  await expect.poll(() => test.store.redis.zcard(test.store.keysOf(writer.id).waiting)).toBe(0);
});

describe('rejects without storing a request', () => {
  it('several prompts with an Idempotency-Key', async () => {
    const test = await openTextApi();
    const headers = { 'Idempotency-Key': 'a-key-of-a-client' };
    const answer = await postJson(test, path, { model: writer.id, prompt: ['a', 'b'] }, { headers });
    expect(answer.status).toBe(400);
    expect(await test.store.redis.zcard(test.store.keysOf(writer.id).waiting)).toBe(0);
  });

  it.each<[object, string | RegExp, string]>([
    [{ prompt: undefined }, 'prompt is missing, expected text, or a list of token ids', 'prompt'],
    [{ prompt: '' }, /^prompt is "", expected text of 1 to /, 'prompt'],
    [{ prompt: [] }, /^prompt is \[\], expected text of 1 to /, 'prompt'],
    [{ prompt: [6144] }, 'prompt.0 is 6144, expected an id below 6144, as many as writer has', 'prompt.0'],
    [{ logprobs: 6 }, 'logprobs is 6, expected a whole number from 0 to 5', 'logprobs'],
    [{ logprobs: true }, 'logprobs is true, expected a whole number from 0 to 5', 'logprobs'],
    [{ echo: true, prompt: [5] }, 'echo is true, expected false with a prompt of token ids: send it as text', 'echo'],
    [{ echo: true, logprobs: 1 }, 'logprobs is 1, expected nothing with echo: prompts have no logprobs', 'logprobs'],
    [
      { prompt: Array.from({ length: 65 }, () => 'a') },
      /^prompt is "65 prompts", expected a text or a list of at most 64/,
      'prompt',
    ],
    [{ suffix: 'x' }, /^suffix is "x", expected nothing: /, 'suffix'],
    [{ best_of: 3 }, 'best_of is 3, expected the same number as n', 'best_of'],
    [{ stream_options: {} }, 'stream_options is {}, expected nothing without "stream": true', 'stream_options'],
    [
      { max_tokens: 300 },
      /^max_tokens is 300, expected at most \d+: this model's maximum context length is 256 tokens, /,
      'max_tokens',
    ],
  ])('%j', async (body, message, param) => {
    const test = await openTextApi();
    const before = await allKeys(test.store);
    const response = await postJson(test, path, { prompt, ...body });
    const { error } = errorSchema.parse(await response.json());
    expect([response.status, error.type, error.param]).toEqual([400, 'invalid_request_error', param]);
    expect(error.message).toMatch(message);
    expect(await allKeys(test.store)).toEqual(before);
  });
});
