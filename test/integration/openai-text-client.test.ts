/** The OpenAI SDK and other clients on an API whose worker is played by the test. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import OpenAI, { APIUserAbortError, BadRequestError, UnprocessableEntityError } from 'openai';
import { expect, it, onTestFinished, vi } from 'vitest';
import { runNext } from '../../apps/api/src/testing/fake-worker.ts';
import { stateOf } from '../../apps/api/src/testing/generate.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { end, openTextApi, writeTokens, writer } from '../../apps/api/src/testing/open-text-api.ts';
import type { TestApi, TestApiOptions } from '../../apps/api/src/testing/test-api.ts';

const model = writer.id;
const messages = [{ role: 'user' as const, content: 'something cold' }];
const request = { model, messages };

async function open(options?: TestApiOptions) {
  const test = await openTextApi(options);
  const { url } = await listen(test);
  const baseURL = `${url}/v1`;
  return { test, url, baseURL, client: new OpenAI({ baseURL, apiKey: 'none' }) };
}

/** Returns the ids of queued requests. */
function waiting({ store }: TestApi): Promise<string[]> {
  return store.redis.zrange(store.keysOf(model).waiting, 0, '-1');
}

async function onlyId(test: TestApi): Promise<string> {
  await expect.poll(() => waiting(test)).toHaveLength(1);
  return (await waiting(test))[0]!;
}

/** Returns the error that a call throws. Attaches its handler at once, so a rejection is never unhandled. */
function errorOf(call: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(call).then(
    () => expect.unreachable('it went well'),
    (error: unknown) => error,
  );
}

it.each([false, true])('aborting before the first chunk cancels the request, streaming: %s', async (stream) => {
  const { test, client } = await open();
  const abort = new AbortController();
  const failing = errorOf(client.chat.completions.create({ ...request, stream }, { signal: abort.signal }));
  const id = await onlyId(test);
  abort.abort();
  expect(await failing).toBeInstanceOf(APIUserAbortError);
  await expect.poll(() => stateOf(test.store, id)).toBe('canceled');
});

it('leaving a stream in the middle cancels the request', async () => {
  const { test, client } = await open();
  const streaming = client.chat.completions.create({ ...request, stream: true });
  const id = await onlyId(test);
  const run = await runNext(test.store, model);
  await writeTokens(run, ['an ']);
  for await (const chunk of await streaming) if (chunk.choices[0]!.delta.content === 'an ') break;
  await expect.poll(() => run.finish({ state: 'canceled' }).then(() => stateOf(test.store, id))).toBe('canceled');
});

it('the OpenAI SDK retries after a 503 of a full queue', async () => {
  const { test, client } = await open({ config: { queueMaxLength: 1 } });
  const first = errorOf(client.chat.completions.create(request));
  const id = await onlyId(test);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const statuses: number[] = [];
  const counted: typeof fetch = async (...args) => {
    const response = await fetch(...args);
    statuses.push(response.status);
    return response;
  };
  const answering = client.withOptions({ maxRetries: 3, fetch: counted }).chat.completions.create(request);
  await expect.poll(() => statuses).toEqual([503]);
  await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  expect(await first).toBeInstanceOf(UnprocessableEntityError);
  await expect
    .poll(async () => {
      vi.advanceTimersByTime(1000);
      return waiting(test);
    })
    .toHaveLength(1);
  const run = await runNext(test.store, model);
  await end(run, 'an owl');
  await run.finish();
  expect((await answering).choices[0]!.message.content).toBe('an owl');
  expect(statuses).toEqual([503, 200]);
});

it.each([false, true])(
  'the OpenAI SDK does not retry a request that ends without text, streaming: %s',
  async (stream) => {
    const { test, client } = await open();
    const failing = errorOf(client.chat.completions.create({ ...request, stream }));
    const id = await onlyId(test);
    await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
    expect(await failing).toBeInstanceOf(UnprocessableEntityError);
    expect(await failing).toMatchObject({ code: 'request_canceled', type: 'generation_error', requestID: id });
    expect(await waiting(test)).toEqual([]);
  },
);

it('an invalid_request error of the engine is a BadRequestError', async () => {
  const { test, client } = await open();
  const failing = errorOf(client.chat.completions.create({ ...request, stream: true }));
  await onlyId(test);
  const error = { code: 'invalid_request', message: 'logit_bias leaves no token.' };
  await (await runNext(test.store, model)).finish({ state: 'failed', error });
  expect(await failing).toBeInstanceOf(BadRequestError);
  expect(await failing).toMatchObject({ code: 'invalid_request', message: '400 logit_bias leaves no token.' });
});

it('an OpenAI SDK stream that fails in the middle throws and is not retried', async () => {
  const { test, client } = await open();
  const streaming = client.chat.completions.create({ ...request, stream: true });
  const id = await onlyId(test);
  const run = await runNext(test.store, model);
  await writeTokens(run, ['an ']);
  const chunks = (await streaming)[Symbol.asyncIterator]();
  await chunks.next();
  await chunks.next();
  const failing = errorOf(chunks.next());
  await run.finish({ state: 'failed', error: { code: 'worker_lost', message: 'The workers were lost.' } });
  expect(await failing).toMatchObject({ code: 'worker_lost', type: 'generation_error', requestID: id });
  expect(await waiting(test)).toEqual([]);
});

it('the Vercel AI SDK does not retry a request without text, and reports a stream that fails', async () => {
  const { test, baseURL } = await open();
  const darkroom = createOpenAICompatible({ name: 'darkroom', baseURL });
  const failing = errorOf(generateText({ model: darkroom(model), prompt: 'x' }));
  const id = await onlyId(test);
  await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  expect(await failing).toMatchObject({ statusCode: 422, message: `Request ${id} was canceled.` });
  expect(await waiting(test)).toEqual([]);
  const errors: unknown[] = [];
  const { textStream } = streamText({
    model: darkroom(model),
    prompt: 'x',
    onError: ({ error }) => void errors.push(error),
  });
  const reading = (async () => {
    let text = '';
    for await (const delta of textStream) text += delta;
    return text;
  })();
  await onlyId(test);
  const run = await runNext(test.store, model);
  await writeTokens(run, ['an ']);
  await run.finish({ state: 'failed', error: { code: 'worker_lost', message: 'The workers were lost.' } });
  expect(await reading).toBe('an ');
  expect(JSON.stringify(errors)).toContain('The workers were lost.');
});

it('LangChain with maxRetries 0 sends a request without text once, and aborting cancels it', async () => {
  const { test, baseURL } = await open();
  // LangChain ignores the header that forbids a retry and also retries after a 422.
  const chat = new ChatOpenAI({ model, apiKey: 'none', configuration: { baseURL }, maxRetries: 0 });
  const failing = errorOf(chat.invoke('x'));
  const id = await onlyId(test);
  await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  expect(await failing).toMatchObject({ status: 422, code: 'request_canceled' });
  const abort = new AbortController();
  const aborted = errorOf(chat.invoke('x', { signal: abort.signal }));
  const second = await onlyId(test);
  abort.abort();
  expect(await aborted).toBeInstanceOf(Error);
  await expect.poll(() => stateOf(test.store, second)).toBe('canceled');
});
