import { cancelRequest, readRequest } from '@darkroom/store';
import { timeOfRequestId } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { errorSchema } from '../../http/error-response.ts';
import { endOverdue } from '../../testing/end-overdue.ts';
import { type RunningRequest, runNext } from '../../testing/fake-worker.ts';
import { stateOf } from '../../testing/generate.ts';
import { postJson, end, logprobOf, openTextApi, writeTokens, writer } from '../../testing/open-text-api.ts';
import { type Frame, readFrames } from '../../testing/sse-reader.ts';
import type { TestApi, TestApiOptions } from '../../testing/test-api.ts';
import { heartbeatMs } from '../../follow/tail-events.ts';
import { chatAnswerSchema } from './chat-completions.ts';
import { drainGraceMs } from '../../answer/follow-stored.ts';

const path = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'something cold' }];
const done: Frame = { data: '[DONE]' };

interface OpenRequest {
  test: TestApi;
  answer: Promise<Response>;
  run: RunningRequest;
  id: string;
}

/** Sends a request and leases it. */
async function open(
  body: object = {},
  options: TestApiOptions & { headers?: Record<string, string> } = {},
): Promise<OpenRequest> {
  const { headers = {}, ...rest } = options;
  const test = await openTextApi(rest);
  const answer = Promise.resolve(postJson(test, path, { messages, ...body }, { headers }));
  const id = await onlyId(test);
  return { test, answer, id, run: await runNext(test.store, writer.id) };
}

/** Returns the id of the queued request once the API waits for its end. */
async function onlyId(test: TestApi): Promise<string> {
  await expect.poll(() => test.timers()).toBe(3);
  const [id] = await test.store.redis.zrange(test.store.keysOf(writer.id).waiting, 0, '-1');
  return id!;
}

async function errorOf(response: Response) {
  const { error } = errorSchema.parse(await response.json());
  return { status: response.status, ...error };
}

/** Returns the data of all frames of a stream, without the final `[DONE]`. */
async function chunksOf(response: Response): Promise<Record<string, unknown>[]> {
  const frames = await readFrames(response).rest();
  expect(frames.pop()).toEqual(done);
  expect(new Set(frames.map(({ event }) => event))).toEqual(new Set([undefined]));
  return frames.map(({ data }) => JSON.parse(data!) as Record<string, unknown>);
}

describe('an answer without streaming', () => {
  it('contains the full text, the usage and the id of the request', async () => {
    const { answer, id, run } = await open({ user: 'me', seed: 7, max_tokens: 9, a_field_of_tomorrow: [1] });
    await writeTokens(run, ['an ', 'ice', ' cream']);
    await end(run, 'an ice cream', { cached_tokens: 4 });
    await run.finish();
    const response = await answer;
    expect([response.status, response.headers.get('x-request-id')]).toEqual([200, id]);
    const body = chatAnswerSchema.parse(await response.json());
    expect(body).toEqual({
      id: `chatcmpl-${id}`,
      object: 'chat.completion',
      created: Math.floor(timeOfRequestId(id) / 1000),
      model: writer.id,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'an ice cream', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 7,
        completion_tokens: 3,
        total_tokens: 10,
        prompt_tokens_details: { cached_tokens: 4 },
        nfe: 3,
      },
    });
  });

  it('stores the values of all fields; max_completion_tokens takes precedence over max_tokens', async () => {
    const fields = { temperature: 0.5, top_p: 0.9, top_k: 5, min_p: 0.1, presence_penalty: 1, frequency_penalty: -1 };
    const more = { logit_bias: { 5: -100 }, n: 2, seed: 7, stop: ' on', ignore_eos: true, max_tokens: 5 };
    const { test, id } = await open({ ...fields, ...more, max_completion_tokens: 9, user: 'me@example.org' });
    const stored = await readRequest(test.store, id);
    expect((stored as { request: { input: object } }).request.input).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      topK: 5,
      minP: 0.1,
      presencePenalty: 1,
      frequencyPenalty: -1,
      logitBias: { 5: -100 },
      n: 2,
      seed: 7,
      stop: [' on'],
      ignoreEos: true,
      maxTokens: 9,
    });
    expect(JSON.stringify(stored)).not.toContain('me@example.org');
  });

  it('accepts null as a default, text parts, and assistant messages without content', async () => {
    const fields = 'model max_tokens temperature stop seed n logprobs stream stream_options tools response_format user';
    const nothing = Object.fromEntries(fields.split(' ').map((name) => [name, null]));
    const parts = [
      { type: 'text', text: 'something' },
      { type: 'text', text: 'cold' },
    ];
    const { test, id } = await open({
      ...nothing,
      response_format: { type: 'text' },
      messages: [{ role: 'user', content: parts }, { role: 'assistant', content: null }, ...messages],
    });
    const joined = await open({
      messages: [{ role: 'user', content: 'something\ncold' }, { role: 'assistant', content: '' }, ...messages],
    });
    const [one, two] = await Promise.all([readRequest(test.store, id), readRequest(joined.test.store, joined.id)]);
    expect(one).toMatchObject({ request: { input: { maxTokens: 24, n: 1 } } });
    expect(one).toMatchObject({ request: { input: (two as { request: { input: object } }).request.input } });
  });

  it('converts the role developer to system', async () => {
    const [developer, system] = await Promise.all(
      ['developer', 'system'].map(async (role) => {
        const { test, id } = await open({
          messages: [{ role, content: 'Be short.' }, { role, content: [{ type: 'text', text: 'No.' }] }, ...messages],
        });
        return (await readRequest(test.store, id)) as { request: { input: object } };
      }),
    );
    expect(developer!.request.input).toEqual(system!.request.input);
  });

  it('contains logprobs of each token and of its alternatives', async () => {
    const { answer, run } = await open({ logprobs: true, top_logprobs: 1 });
    const other = { token: 'a', logprob: -1.5, bytes: [97] };
    await writeTokens(run, [logprobOf('an', -0.25, [other]), logprobOf(' owl', -0.5)]);
    await end(run, 'an owl');
    await run.finish();
    const { choices } = chatAnswerSchema.parse(await (await answer).json());
    expect(choices[0]!.logprobs).toEqual({
      content: [
        { token: 'an', logprob: -0.25, bytes: [97, 110], top_logprobs: [other] },
        { token: ' owl', logprob: -0.5, bytes: [32, 111, 119, 108], top_logprobs: [] },
      ],
      refusal: null,
    });
  });

  it('orders choices by index, whichever finished first', async () => {
    const { answer, run } = await open({ n: 2, logprobs: true });
    await writeTokens(run, [logprobOf('b', -1)], { index: 1 });
    await end(run, 'b', { index: 1, finish_reason: 'length' });
    await end(run, '', { index: 0 });
    await run.finish();
    const { choices, usage } = chatAnswerSchema.parse(await (await answer).json());
    expect(choices.map(({ index, message, finish_reason }) => [index, message.content, finish_reason])).toEqual([
      [0, '', 'stop'],
      [1, 'b', 'length'],
    ]);
    expect(choices.map(({ logprobs }) => logprobs?.content.length)).toEqual([0, 1]);
    expect(usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 6 });
  });

  it('contains the full text but no logprobs if the log is incomplete', async () => {
    const { answer, run } = await open({ logprobs: true });
    await run.entry({ type: 'snapshot', offset: 0, text: 'an ' });
    await writeTokens(run, [logprobOf('owl', -1)], { offset: 3 });
    await end(run, 'an owl');
    await run.finish();
    const { choices } = chatAnswerSchema.parse(await (await answer).json());
    expect(choices).toMatchObject([{ message: { content: 'an owl' }, logprobs: null }]);
  });
});

it('replays the full answer by its Idempotency-Key, also after the log was trimmed', async () => {
  const headers = { 'Idempotency-Key': 'k-1' };
  const { test, answer, id, run } = await open({ n: 2 }, { headers });
  await writeTokens(run, ['an owl']);
  await end(run, 'an owl');
  await end(run, 'a fox', { index: 1 });
  await run.finish();
  const first: unknown = await (await answer).json();
  await test.store.redis.xtrim(test.store.keysOf(writer.id).events(id), 'MAXLEN', 1);
  const again = await postJson(test.replica(), path, { messages, n: 2 }, { headers });
  expect([again.headers.get('idempotent-replayed'), await again.json()]).toEqual(['true', first]);
  const other = await postJson(test, path, { messages, n: 3 }, { headers });
  expect(await errorOf(other)).toMatchObject({ status: 409, code: 'idempotency_conflict' });
});

describe('a stream', () => {
  it('contains the role, then each chunk of text, then the finish_reason', async () => {
    const { answer, id, run, test } = await open({ stream: true });
    await writeTokens(run, ['an ', 'owl']);
    const response = await answer;
    expect([response.status, response.headers.get('x-request-id')]).toEqual([200, id]);
    await end(run, 'an owl');
    await run.finish();
    const head = {
      id: `chatcmpl-${id}`,
      object: 'chat.completion.chunk',
      created: Math.floor(timeOfRequestId(id) / 1000),
      model: writer.id,
    };
    const choice = { index: 0, logprobs: null };
    expect(await chunksOf(response)).toEqual([
      { ...head, choices: [{ ...choice, delta: { role: 'assistant', content: '' }, finish_reason: null }] },
      { ...head, choices: [{ ...choice, delta: { content: 'an ' }, finish_reason: null }] },
      { ...head, choices: [{ ...choice, delta: { content: 'owl' }, finish_reason: null }] },
      { ...head, choices: [{ ...choice, delta: {}, finish_reason: 'stop' }] },
    ]);
    expect([test.hub.size, test.timers(), await stateOf(test.store, id)]).toEqual([0, 0, 'succeeded']);
  });

  it('begins with heartbeat comments while the request is queued', async () => {
    const { answer, id, run, test } = await open({ stream: true });
    test.tick(heartbeatMs);
    const response = await answer;
    expect([response.status, response.headers.get('x-request-id')]).toEqual([200, id]);
    const reader = readFrames(response);
    expect(await reader.next()).toEqual({ comment: 'heartbeat' });
    const next = reader.next();
    test.tick(heartbeatMs);
    expect(await next).toEqual({ comment: 'heartbeat' });
    await writeTokens(run, ['an ', 'owl']);
    await end(run, 'an owl');
    await run.finish();
    const data = (await reader.rest()).map((frame) => frame.data!);
    const contents = data.flatMap((text) => /"content":"([^"]*)"/.exec(text)?.[1] ?? []);
    expect([contents, data.at(-1)]).toEqual([['', 'an ', 'owl'], '[DONE]']);
  });

  it('contains usage in a separate last chunk, and null in all others', async () => {
    const { answer, run } = await open({ stream: true, stream_options: { include_usage: true } });
    await writeTokens(run, ['owl']);
    await end(run, 'owl', { finish_reason: 'length' });
    await run.finish();
    const chunks = await chunksOf(await answer);
    expect(chunks.map(({ usage }) => usage)).toEqual([
      null,
      null,
      null,
      {
        prompt_tokens: 7,
        completion_tokens: 3,
        total_tokens: 10,
        prompt_tokens_details: { cached_tokens: 0 },
        nfe: 3,
      },
    ]);
    expect(chunks.at(-1)).toMatchObject({ choices: [] });
    expect(chunks.at(-2)).toMatchObject({ choices: [{ finish_reason: 'length' }] });
  });

  it('contains each chunk once if workers repeat it, and blocks only when they are final', async () => {
    const { answer, run } = await open({ stream: true });
    await writeTokens(run, ['an ', 'ow']);
    await writeTokens(run, ['ow', 'l'], { offset: 3 });
    await run.entry({ type: 'snapshot', offset: 6, text: ' ░░', facts: { ids: '3,', calls: 1 } });
    await run.entry({ type: 'snapshot', offset: 6, text: ' ░ it', facts: { ids: '3,', calls: 1 } });
    await run.entry({ type: 'snapshot', offset: 6, text: ' on it', facts: { ids: '3,', calls: 1, settled: 1 } });
    await end(run, 'an owl on it');
    await run.finish();
    const texts = (await chunksOf(await answer)).map(
      ({ choices }) => (choices as { delta: { content?: string } }[])[0]!.delta.content,
    );
    expect(texts).toEqual(['', 'an ', 'ow', 'l', ' on it', undefined]);
  });

  it('skips tokens that have no text yet', async () => {
    const { answer, run } = await open({ stream: true });
    await writeTokens(run, ['', 'an ', '', 'owl']);
    await end(run, 'an owl');
    await run.finish();
    const deltas = (await chunksOf(await answer)).map(({ choices }) => (choices as { delta: object }[])[0]!.delta);
    expect(deltas).toEqual([{ role: 'assistant', content: '' }, { content: 'an ' }, { content: 'owl' }, {}]);
  });

  it('interleaves the chunks of all choices, each with its role and logprobs', async () => {
    const { answer, run } = await open({ stream: true, n: 2, logprobs: true });
    await writeTokens(run, [logprobOf('b', -1)], { index: 1 });
    await writeTokens(run, [logprobOf('a', -2)], { index: 0 });
    await end(run, 'a', { index: 0 });
    await end(run, 'b', { index: 1 });
    await run.finish();
    const choices = (await chunksOf(await answer)).flatMap(
      (chunk) => chunk['choices'] as { index: number; delta: object; logprobs: { content: { logprob: number }[] } }[],
    );
    expect(
      choices.map(({ index, delta, logprobs }) => [index, delta, logprobs?.content.map(({ logprob }) => logprob)]),
    ).toEqual([
      [1, { role: 'assistant', content: '' }, undefined],
      [1, { content: 'b' }, [-1]],
      [0, { role: 'assistant', content: '' }, undefined],
      [0, { content: 'a' }, [-2]],
      [0, {}, undefined],
      [1, {}, undefined],
    ]);
  });

  it('reads the prompt usage from choice 0, whichever finished first', async () => {
    const { answer, run } = await open({ stream: true, n: 2, stream_options: { include_usage: true } });
    await end(run, 'b', { index: 1, cached_tokens: 5 });
    await end(run, 'a', { index: 0, cached_tokens: 2 });
    await run.finish();
    expect((await chunksOf(await answer)).at(-1)).toMatchObject({
      usage: { completion_tokens: 6, prompt_tokens_details: { cached_tokens: 2 } },
    });
  });

  it('contains a role and a finish_reason for an empty text', async () => {
    const { answer, run } = await open({ stream: true });
    await end(run, '');
    await run.finish();
    const chunks = await chunksOf(await answer);
    expect(chunks.map(({ choices }) => choices)).toMatchObject([
      [{ delta: { role: 'assistant', content: '' } }],
      [{ delta: {}, finish_reason: 'stop' }],
    ]);
  });

  it('sends its headers only with the first chunk or heartbeat', async () => {
    const { test, answer, run } = await open({ stream: true });
    let hasCome = false;
    void answer.then(() => (hasCome = true));
    test.tick(heartbeatMs - 1);
    await run.progress(1);
    await expect.poll(() => test.hub.size).toBe(1);
    expect(hasCome).toBe(false);
    await writeTokens(run, ['owl']);
    expect((await answer).status).toBe(200);
  });
});

describe('an error after the request is stored', () => {
  const failures: Record<string, (opened: OpenRequest) => Promise<unknown>> = {
    engine_failed: ({ run }) =>
      run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'Nothing came of it.' } }),
    request_canceled: async ({ test, id, run }) => {
      await cancelRequest(test.store, id);
      await run.finish({ state: 'canceled' });
    },
    request_expired: ({ test, id }) => endOverdue(test.store, id),
    server_stopping: async ({ test }) => {
      test.draining.abort();
      test.tick(drainGraceMs);
    },
  };

  it.each(Object.keys(failures).flatMap((code) => [false, true].map((stream) => ({ code, stream }))))(
    'before the first chunk is a 422 that no SDK retries: %j',
    async ({ code, stream }) => {
      const opened = await open({ stream });
      await failures[code]!(opened);
      const response = await opened.answer;
      const { headers } = response;
      expect([headers.get('x-request-id'), headers.get('x-should-retry')]).toEqual([opened.id, 'false']);
      expect(await errorOf(response)).toMatchObject({ status: 422, code, type: 'generation_error' });
      expect([opened.test.hub.size, opened.test.timers()]).toEqual([0, 0]);
    },
  );

  it.each([false, true])('is a 400 if the engine rejected the request, streaming: %s', async (stream) => {
    const { answer, run } = await open({ stream });
    const message = 'logit_bias leaves no token.';
    await run.finish({ state: 'failed', error: { code: 'invalid_request', message } });
    const response = await answer;
    expect(response.headers.get('x-should-retry')).toBe('false');
    expect(await errorOf(response)).toEqual({
      status: 400,
      code: 'invalid_request',
      type: 'invalid_request_error',
      message,
      param: null,
    });
  });

  it.each(Object.keys(failures))('after the first heartbeat is sent as data: %s', async (code) => {
    const opened = await open({ stream: true });
    opened.test.tick(heartbeatMs);
    const response = await opened.answer;
    expect([response.status, response.headers.get('x-request-id')]).toEqual([200, opened.id]);
    const reader = readFrames(response);
    expect(await reader.next()).toEqual({ comment: 'heartbeat' });
    const rest = reader.rest();
    await failures[code]!(opened);
    expect((await rest).map(({ data }) => JSON.parse(data!))).toMatchObject([
      { error: { code }, request_id: opened.id },
    ]);
    expect([opened.test.hub.size, opened.test.timers()]).toEqual([0, 0]);
  });

  it.each(Object.keys(failures))('after the first chunk is the last data of the stream: %s', async (code) => {
    const opened = await open({ stream: true });
    await writeTokens(opened.run, ['an ']);
    const reader = readFrames(await opened.answer);
    await reader.next();
    await reader.next();
    const rest = reader.rest();
    await failures[code]!(opened);
    const frames = await rest;
    expect(frames.map(({ event }) => event)).toEqual([undefined]);
    expect(JSON.parse(frames[0]!.data!)).toMatchObject({
      error: { code, type: 'generation_error' },
      request_id: opened.id,
    });
    expect([opened.test.hub.size, opened.test.timers()]).toEqual([0, 0]);
  });

  it('on shutdown tells a client with an Idempotency-Key to retry; the next replica finds the same request', async () => {
    const headers = { 'Idempotency-Key': 'k-1' };
    const { test, answer, id, run } = await open({ stream: true }, { headers });
    test.draining.abort();
    test.tick(drainGraceMs);
    const stopped = await answer;
    expect([stopped.status, stopped.headers.get('x-should-retry')]).toEqual([422, 'true']);
    const again = postJson(test.replica(), path, { messages, stream: true }, { headers });
    await writeTokens(run, ['owl']);
    await end(run, 'owl');
    await run.finish();
    const response = await again;
    expect(response.headers.get('x-request-id')).toBe(id);
    expect((await chunksOf(response)).map(({ created }) => created)).toEqual(
      Array.from({ length: 3 }, () => Math.floor(timeOfRequestId(id) / 1000)),
    );
  });
});
