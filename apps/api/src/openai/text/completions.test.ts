import { timeOfRequestId } from '@darkroom/core';
import { readRequest } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { errorSchema } from '../../http/error-response.ts';
import { runNext } from '../../testing/fake-worker.ts';
import { ask, end, logprobOf, openTextApi, write, writer } from '../../testing/open-text-api.ts';
import { readFrames } from '../../testing/sse-reader.ts';
import { completionAnswerSchema } from './completions-schema.ts';

const path = '/v1/completions';
const prompt = 'a bird on a ';

/** A request that runs. */
async function open(body: object = {}) {
  const test = await openTextApi();
  const answer = Promise.resolve(ask(test, path, { prompt, ...body }));
  await expect.poll(() => test.timers()).toBe(3);
  const [id] = await test.store.redis.zrange(test.store.keysOf(writer.id).waiting, 0, '-1');
  const { input } = ((await readRequest(test.store, id!)) as { request: { input: object } }).request;
  return { test, answer, id: id!, input, run: await runNext(test.store, writer.id) };
}

const other = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] });
const tokens = [
  logprobOf('bl', -0.25, [other('bl', -0.25), other('r', -2)]),
  // Not among the most probable ones.
  logprobOf('ue', -3, [other('ack', -0.125)]),
];
const said = {
  tokens: ['bl', 'ue'],
  token_logprobs: [-0.25, -3],
  top_logprobs: [
    { bl: -0.25, r: -2 },
    { ack: -0.125, ue: -3 },
  ],
  text_offset: [0, 2],
};
/** What is said of one of them. */
function part(at: number): object {
  return Object.fromEntries(Object.entries(said).map(([name, values]) => [name, values.slice(at, at + 1)]));
}

it('answers with the text, and with tokens as this route has them', async () => {
  const { answer, id, run } = await open({ logprobs: 2 });
  await write(run, tokens);
  await end(run, 'blue', { finish_reason: 'length' });
  await run.finish();
  const response = await answer;
  expect([response.status, response.headers.get('x-request-id')]).toEqual([200, id]);
  expect(completionAnswerSchema.parse(await response.json())).toEqual({
    id: `cmpl-${id}`,
    object: 'text_completion',
    created: Math.floor(timeOfRequestId(id) / 1000),
    model: writer.id,
    choices: [{ index: 0, text: 'blue', logprobs: said, finish_reason: 'length' }],
    usage: {
      prompt_tokens: 7,
      completion_tokens: 3,
      total_tokens: 10,
      prompt_tokens_details: { cached_tokens: 0 },
      nfe: 3,
    },
  });
});

it('streams each piece, with the places of its tokens in the whole', async () => {
  const { answer, id, run } = await open({ logprobs: 2, stream: true, stream_options: { include_usage: true } });
  await write(run, tokens);
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

it('says where each token begins, also of several in a piece, of parts of a character and of tokens without a text', async () => {
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
])('takes %j', async (body, input) => {
  const asked = await open(body);
  expect(asked.input).toMatchObject(input);
});

it('takes one prompt in a list as the prompt', async () => {
  const { input } = await open({ prompt: [prompt] });
  expect(input).toEqual((await open()).input);
});

describe('refusing stores nothing', () => {
  it.each<[object, string | RegExp, string]>([
    [{ prompt: undefined }, 'prompt is missing, expected text, or a list of ids of tokens', 'prompt'],
    [{ prompt: '' }, /^prompt is "", expected text of 1 to /, 'prompt'],
    [{ prompt: [] }, /^prompt is \[\], expected text of 1 to /, 'prompt'],
    [{ prompt: [6144] }, 'prompt.0 is 6144, expected an id below 6144, as many as writer has', 'prompt.0'],
    [{ prompt: ['a', 'b'] }, /^prompt is \["a","b"\], expected one prompt: each takes a request of its own/, 'prompt'],
    [{ prompt: [[5], [6]] }, /^prompt is \[\[5\],\[6\]\], expected one prompt: /, 'prompt'],
    [{ logprobs: 6 }, 'logprobs is 6, expected a whole number from 0 to 5', 'logprobs'],
    [{ logprobs: true }, 'logprobs is true, expected a whole number from 0 to 5', 'logprobs'],
    [{ echo: true }, 'echo is true, expected false: a prompt is not repeated', 'echo'],
    [{ suffix: 'x' }, /^suffix is "x", expected nothing: /, 'suffix'],
    [{ best_of: 3 }, 'best_of is 3, expected as many as n', 'best_of'],
    [{ stream_options: {} }, 'stream_options is {}, expected nothing without "stream": true', 'stream_options'],
    [{ max_tokens: 300 }, /^max_tokens is 300, expected at most \d+: writer reads and writes 256 tokens/, 'max_tokens'],
  ])('%j', async (body, message, param) => {
    const test = await openTextApi();
    const before = await allKeys(test.store);
    const response = await ask(test, path, { prompt, ...body });
    const { error } = errorSchema.parse(await response.json());
    expect([response.status, error.type, error.param]).toEqual([400, 'invalid_request_error', param]);
    expect(error.message).toMatch(message);
    expect(await allKeys(test.store)).toEqual(before);
  });

  it('says logprobs where so many alternatives would keep too much', async () => {
    const test = await openTextApi({ config: { requestMaxBytes: 60_000 } });
    const { error } = errorSchema.parse(await (await ask(test, path, { prompt, logprobs: 5 })).json());
    expect([error.param, error.message]).toEqual([
      'logprobs',
      expect.stringMatching(/^logprobs lets this request keep /),
    ]);
  });
});
