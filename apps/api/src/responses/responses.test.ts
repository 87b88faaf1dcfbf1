/** Responses over HTTP, with a worker that does what the test says. */
import { cancelRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { drainGraceMs } from '../openai/follow-stored.ts';
import { type RunningRequest, runNext } from '../testing/fake-worker.ts';
import { stateOf } from '../testing/generate.ts';
import { ask, end, openTextApi, write, writer } from '../testing/open-text-api.ts';
import { type Frame, readFrames, type SseReader } from '../testing/sse-reader.ts';
import type { TestApi, TestApiOptions } from '../testing/test-api.ts';
import { responseSchema, type ResponseView } from './response-view.ts';

const path = '/v1/responses';
const input = 'something cold';
const done: Frame = { data: '[DONE]' };

type Body = Record<string, unknown>;

function dataOf(frame: Frame | undefined): Body {
  return JSON.parse(frame?.data ?? 'null') as Body;
}

async function viewOf(response: Response): Promise<ResponseView> {
  expect(response.status).toBe(200);
  return responseSchema.parse(await response.json());
}

/** A response in the background whose request runs. */
async function open(body: Body = {}, options?: TestApiOptions) {
  const test = await openTextApi(options);
  const view = await viewOf(await ask(test, path, { input, background: true, ...body }));
  return { test, view, url: `${path}/${view.id}`, run: await runNext(test.store, writer.id) };
}

/** A stream whose request runs. */
async function stream(body: Body = {}) {
  const test = await openTextApi();
  const response = await ask(test, path, { input, stream: true, ...body });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  const id = response.headers.get('x-request-id')!;
  return { test, id, reader: readFrames(response), run: await runNext(test.store, writer.id) };
}

async function finish(run: RunningRequest, text: string, facts = {}): Promise<void> {
  await end(run, text, facts);
  await run.finish({ state: 'succeeded', outputs: 1 });
}

async function problemOf(test: TestApi, body: Body) {
  const response = await ask(test, path, body);
  const { error } = (await response.json()) as { error: { param: string; message: string } };
  return [response.status, error.param, error.message];
}

async function typesOf(reader: SseReader): Promise<[string | undefined, unknown][]> {
  const frames = await reader.rest();
  expect(frames.pop()).toEqual(done);
  return frames.map((frame) => {
    expect(frame.event).toBe(dataOf(frame)['type']);
    return [frame.event, dataOf(frame)['sequence_number']];
  });
}

describe('one answer', () => {
  it('is the whole response', async () => {
    const test = await openTextApi();
    const metadata = { purpose: 'a test' };
    const asking = ask(test, path, {
      input,
      instructions: 'Be short.',
      max_output_tokens: 9,
      temperature: 1,
      metadata,
    });
    await expect.poll(() => test.hub.size).toBe(1);
    const run = await runNext(test.store, writer.id);
    await write(run, ['a penguin', ' on ice']);
    await finish(run, 'a penguin on ice');
    const response = await asking;
    const id = response.headers.get('x-request-id')!;
    const view = await viewOf(response);
    expect(view).toMatchObject({
      id: `resp_${id}`,
      status: 'completed',
      background: false,
      error: null,
      instructions: 'Be short.',
      max_output_tokens: 9,
      metadata,
      model: 'writer',
      output: [{ id: `msg_${id}`, role: 'assistant', status: 'completed', content: [{ text: 'a penguin on ice' }] }],
      temperature: 1,
      usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
    });
    expect(await viewOf(await test.api.request(`${path}/${view.id}`))).toEqual(view);
    const { parameters } = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: Body };
    expect(parameters).toMatchObject({ max_tokens: 9, temperature: 1, model: 'writer' });
  });

  it('is incomplete when it was cut', async () => {
    const { test, url, run } = await open();
    await write(run, ['a penguin']);
    await finish(run, 'a penguin', { finish_reason: 'length' });
    expect(await viewOf(await test.api.request(url))).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete' }],
    });
  });

  it('of a request that fails is an error that no SDK asks for again', async () => {
    const test = await openTextApi();
    const asking = ask(test, path, { input });
    await expect.poll(() => test.hub.size).toBe(1);
    const run = await runNext(test.store, writer.id);
    await run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'Nothing came of it.' } });
    const response = await asking;
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([422, 'false']);
    expect(await response.json()).toMatchObject({ error: { code: 'engine_failed' } });
  });

  it('is canceled by a client that goes away', async () => {
    const test = await openTextApi();
    const abort = new AbortController();
    const asking = ask(test, path, { input }, { signal: abort.signal });
    await expect.poll(() => test.hub.size).toBe(1);
    const [id] = await test.store.redis.zrange(test.store.keysOf(writer.id).waiting, 0, -1);
    abort.abort();
    await asking;
    await expect.poll(() => stateOf(test.store, id!)).toBe('canceled');
  });
});

describe('in the background', () => {
  it('it answers at once, and says where it is', async () => {
    const { test, view, url, run } = await open();
    expect(view).toMatchObject({ status: 'queued', background: true, output: [], usage: null });
    expect(await viewOf(await test.api.request(url))).toEqual({ ...view, status: 'in_progress' });
    await write(run, ['a pen', 'guin']);
    expect(await viewOf(await test.api.request(url))).toEqual({
      ...view,
      status: 'in_progress',
      output: [
        {
          id: view.id.replace('resp_', 'msg_'),
          type: 'message',
          status: 'in_progress',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'a penguin', annotations: [], logprobs: [] }],
        },
      ],
    });
  });

  it('a stream that is left is not canceled, and goes on at another replica', async () => {
    const { test, id, reader, run } = await stream({ background: true });
    await write(run, ['a pen']);
    const seen: Frame[] = [];
    for (let frame = await reader.next(); dataOf(frame)['sequence_number'] !== 9; frame = await reader.next())
      seen.push(frame!);
    await reader.cancel();
    expect([await stateOf(test.store, id), test.hub.size]).toEqual(['running', 0]);
    const other = test.replica();
    const resumed = await other.api.request(`${path}/resp_${id}?stream=true&starting_after=9`);
    const rest = readFrames(resumed);
    await write(run, ['guin'], { offset: 5 });
    expect(dataOf(await rest.next())).toMatchObject({ delta: 'guin', sequence_number: 13 });
    await finish(run, 'a penguin');
    expect(await typesOf(rest)).toEqual([
      ['response.output_text.done', 14],
      ['response.content_part.done', 15],
      ['response.output_item.done', 16],
      ['response.completed', 17],
    ]);
  });

  it('the same key is the same response, wherever it stands', async () => {
    const test = await openTextApi();
    const headers = { 'idempotency-key': 'penguin-1' };
    const send = async () => viewOf(await ask(test, path, { input, background: true }, { headers }));
    const first = await send();
    const run = await runNext(test.store, writer.id);
    await write(run, ['a penguin']);
    await finish(run, 'a penguin');
    expect(await send()).toMatchObject({ id: first.id, status: 'completed' });
  });
});

describe('a stream', () => {
  it('has every event once, and can be read again from any of them', async () => {
    const { test, id, reader, run } = await stream();
    await write(run, ['a pen', 'guin']);
    await finish(run, 'a penguin');
    const all = await reader.rest();
    const again = await readFrames(await test.api.request(`${path}/resp_${id}?stream=true`)).rest();
    expect(again).toEqual(all);
    expect(all.map(({ event, data }) => event ?? data)).toEqual([
      'response.created',
      'response.queued',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
      '[DONE]',
    ]);
    for (const [at, frame] of all.slice(0, -1).entries()) {
      const after = String(dataOf(frame)['sequence_number']);
      const rest = await test.api.request(`${path}/resp_${id}?stream=true&starting_after=${after}`);
      expect(await readFrames(rest).rest()).toEqual(all.slice(at + 1));
    }
  });

  it('fails with what went wrong, or says that it was canceled', async () => {
    const failing = await stream();
    await failing.run.finish({ state: 'failed', error: { code: 'worker_lost', message: 'The workers were lost.' } });
    expect((await typesOf(failing.reader)).at(-1)).toEqual(['response.failed', 8]);
    const waiting = await openTextApi();
    const reader = readFrames(await ask(waiting, path, { input, stream: true }));
    expect(dataOf(await reader.next())).toMatchObject({ type: 'response.created', response: { status: 'queued' } });
    const [id] = await waiting.store.redis.zrange(waiting.store.keysOf(writer.id).waiting, 0, -1);
    await cancelRequest(waiting.store, id!);
    await reader.next();
    expect(dataOf(await reader.next())).toMatchObject({ type: 'response.failed', response: { status: 'cancelled' } });
    expect(await reader.next()).toEqual(done);
  });

  it('of a process that stops says where it goes on, with the last number', async () => {
    const { test, id, reader, run } = await stream();
    await write(run, ['a pen']);
    for (let frame = await reader.next(); dataOf(frame)['sequence_number'] !== 9;) frame = await reader.next();
    const last = reader.rest();
    test.draining.abort();
    test.tick(drainGraceMs);
    const frames = await last;
    expect(frames).toHaveLength(1);
    expect(dataOf(frames[0])).toMatchObject({ type: 'error', sequence_number: 9, code: 'server_stopping' });
    expect(dataOf(frames[0])['message']).toContain(`/v1/responses/resp_${id}?stream=true&starting_after=9`);
    expect(await stateOf(test.store, id)).toBe('running');
  });

  it('of a client that goes away cancels', async () => {
    const { test, id, reader } = await stream();
    await reader.next();
    await reader.cancel();
    await expect.poll(() => test.lines.join()).toContain('went away');
    await test.api.request(`/v1/predict/${id}`);
    expect((await (await test.api.request(`/v1/predict/${id}`)).json()) as Body).toMatchObject({ is_canceling: true });
  });
});

describe('cancel', () => {
  it('ends what waits, and shows what has ended', async () => {
    const test = await openTextApi();
    const { id } = await viewOf(await ask(test, path, { input, background: true }));
    for (let time = 0; time < 2; time++)
      expect(await viewOf(await ask(test, `${path}/${id}/cancel`, undefined))).toMatchObject({ status: 'cancelled' });
  });

  it('waits until what runs has left, with what was written', async () => {
    const { test, url, run } = await open();
    await write(run, ['a pen']);
    const canceling = ask(test, `${url}/cancel`, undefined);
    await expect.poll(() => test.hub.size).toBe(1);
    await run.finish({ state: 'canceled' });
    expect(await viewOf(await canceling)).toMatchObject({
      status: 'cancelled',
      output: [{ status: 'incomplete', content: [{ text: 'a pen' }] }],
    });
  });
});

describe('a conversation', () => {
  /** What a request's messages were. */
  const said = async (test: TestApi, id: string) => {
    const envelope = await test.store.redis.get(test.store.keysOf(writer.id).input(id.replace('resp_', '')));
    return (JSON.parse(envelope!) as { input: { said: { messages: unknown } } }).input.said.messages;
  };

  it('goes on after a response, without its instructions', async () => {
    const { test, view, run } = await open({ instructions: 'Be short.' });
    await write(run, ['a penguin']);
    await finish(run, 'a penguin');
    const next = await viewOf(
      await ask(test, path, { input: 'make it blue', background: true, previous_response_id: view.id }),
    );
    expect(next).toMatchObject({ previous_response_id: view.id, instructions: null });
    const messages = [
      { role: 'user', content: input },
      { role: 'assistant', content: 'a penguin' },
      { role: 'user', content: 'make it blue' },
    ];
    expect(await said(test, next.id)).toEqual(messages);
    const direct = await viewOf(await ask(test, path, { input: messages, background: true }));
    const promptOf = async (id: string) => {
      const answer = await test.api.request(`/v1/predict/${id.replace('resp_', '')}`);
      return ((await answer.json()) as { parameters: { prompt: number[] } }).parameters.prompt;
    };
    expect(await promptOf(next.id)).toEqual(await promptOf(direct.id));
    const reference = { type: 'item_reference', id: view.id.replace('resp_', 'msg_') };
    const referring = await viewOf(
      await ask(test, path, { input: [messages[0], reference, messages[2]], background: true }),
    );
    expect(await promptOf(referring.id)).toEqual(await promptOf(direct.id));
  });

  it('does not go on after what is not there, or not over, or of somebody else', async () => {
    const { test, view } = await open();
    const problem = (previous_response_id: string) => problemOf(test, { input, previous_response_id });
    expect(await problem('resp_42')).toEqual([
      400,
      'previous_response_id',
      'previous_response_id is "resp_42", expected the id of a response',
    ]);
    const nobody = `${view.id.slice(0, -1)}${view.id.endsWith('0') ? '1' : '0'}`;
    expect((await problem(nobody))[2]).toContain('there is none of this id');
    expect((await problem(view.id))[2]).toContain('this one is in_progress');
    const reference = { type: 'item_reference', id: view.id.replace('resp_', 'msg_') };
    expect((await problemOf(test, { input: [reference] }))[1]).toBe('input.0.id');
    expect((await problemOf(test, { input: [{ ...reference, id: 'rs_1' }] }))[1]).toBe('input.0.id');
  });

  it('is not kept where prompts are not', async () => {
    const { test, view, url, run } = await open(
      { instructions: 'Be short.', metadata: { purpose: 'a test' } },
      { config: { storePrompts: false } },
    );
    await write(run, ['a penguin']);
    await finish(run, 'a penguin');
    expect(await viewOf(await test.api.request(url))).toMatchObject({
      instructions: null,
      metadata: { purpose: 'a test' },
      output: [{ content: [{ text: 'a penguin' }] }],
    });
    const kept = await test.store.redis.get(test.store.keysOf(writer.id).input(view.id.replace('resp_', '')));
    expect(kept).not.toContain('cold');
    expect((await problemOf(test, { input, previous_response_id: view.id }))[2]).toContain('keeps none after the end');
  });
});

describe('what is refused', () => {
  it.each<[Body, string, string]>([
    [{}, 'input', 'input is missing, expected text, or a list of at least one message'],
    [{ input: '' }, 'input', 'input is "", expected text'],
    [{ input: [] }, 'input', 'input is [], expected text'],
    [{ input: [5] }, 'input.0', 'input.0 is 5, expected a message'],
    [
      { input: [{ role: 'robot', content: 'x' }] },
      'input.0.role',
      'expected one of user, assistant, system, developer',
    ],
    [{ input: [{ role: 'user' }] }, 'input.0.content', 'input.0.content is missing, expected text'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'x' }] }] },
      'input.0.content.0.type',
      'input.0.content.0.type is "input_image", expected input_text or output_text',
    ],
    [{ input: [{ role: 'user', content: [{ type: 'input_text' }] }] }, 'input.0.content.0.text', 'is missing'],
    [{ input: [{ type: 'function_call_output', output: 'x' }] }, 'input.0.type', 'there are no tools here'],
    [{ input, tools: [{ type: 'function', name: 'f' }] }, 'tools', 'expected []: there are no tools here'],
    [{ input, tool_choice: 'required' }, 'tool_choice', 'expected "auto" or "none": there are no tools here'],
    [{ input, text: { format: { type: 'json_object' } } }, 'text.format.type', 'text.format.type is "json_object"'],
    [{ input, include: ['message.output_text.logprobs'] }, 'include.0', 'message.output_text.logprobs'],
    [{ input, top_logprobs: 2 }, 'top_logprobs', 'top_logprobs is 2, expected 0'],
    [{ input, truncation: 'auto' }, 'truncation', 'truncation is "auto", expected "disabled"'],
    [{ input, conversation: 'conv_1' }, 'conversation', 'previous_response_id'],
    [{ input, prompt: { id: 'p' } }, 'prompt', 'send input instead'],
    [{ input, metadata: { a: 5 } }, 'metadata.a', 'metadata.a is 5, expected text of at most 512 characters'],
    [{ input, stream_options: {} }, 'stream_options', 'none without stream: true'],
    [{ input, background: true, store: false }, 'background', 'false with store: false'],
    [{ input, stream: 'yes' }, 'stream', 'stream is "yes", expected true or false'],
    [{ input, temperature: -1 }, 'temperature', 'temperature is -1, expected a number from 0 to 2'],
    [{ input, max_output_tokens: 0 }, 'max_output_tokens', 'max_output_tokens is 0'],
    [{ input, max_output_tokens: 300 }, 'max_output_tokens', 'max_output_tokens is 300, expected at most'],
    [{ input: 'cold '.repeat(300) }, 'input', 'writer reads and writes 256 together'],
    [{ input, seed: -1 }, 'seed', 'seed is -1'],
  ])('%j', async (body, param, message) => {
    const test = await openTextApi();
    expect(await problemOf(test, body)).toEqual([400, param, expect.stringContaining(message)]);
    expect(await test.store.redis.zcard(test.store.keysOf(writer.id).waiting)).toBe(0);
  });

  it.each([
    ['?stream=maybe', 'stream'],
    ['?stream=true&starting_after=x', 'starting_after'],
    ['?starting_after=3', 'starting_after'],
  ])('%s', async (query, param) => {
    const { test, url } = await open();
    const response = await test.api.request(`${url}${query}`);
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }]);
  });

  it('what is no response, or was not to be kept as one', async () => {
    const test = await openTextApi();
    const id = await test.submit({ model: writer.id, prompt: input });
    for (const url of [`${path}/${id}`, `${path}/resp_${id}`, `${path}/resp_x`, `${path}/resp_${id}?stream=true`])
      expect((await test.api.request(url)).status).toBe(404);
    expect((await ask(test, `${path}/resp_${id}/cancel`, undefined)).status).toBe(404);
    const reader = readFrames(await ask(test, path, { input, stream: true, store: false }));
    const { response } = dataOf(await reader.next()) as { response: ResponseView };
    expect(response.store).toBe(false);
    expect((await test.api.request(`${path}/${response.id}`)).status).toBe(404);
    await reader.cancel();
  });

  it('what is over', async () => {
    const { test, view, url } = await open();
    const keys = test.store.keysOf(writer.id);
    const id = view.id.replace('resp_', '');
    await test.store.redis.del(keys.request(id), keys.input(id), keys.events(id));
    for (const query of ['', '?stream=true']) expect((await test.api.request(`${url}${query}`)).status).toBe(410);
    expect((await problemOf(test, { input, previous_response_id: view.id }))[0]).toBe(400);
  });
});

it('takes null for whatever has a default, and what nobody knows', async () => {
  const test = await openTextApi();
  const nulls = [
    'instructions',
    'max_output_tokens',
    'metadata',
    'previous_response_id',
    'temperature',
    'tools',
    'user',
  ];
  const body = { ...Object.fromEntries(nulls.map((name) => [name, null])), input, service_tier: 'auto', novel: {} };
  expect(await viewOf(await ask(test, path, { ...body, background: true }))).toMatchObject({ status: 'queued' });
});
