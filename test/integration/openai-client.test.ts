/** The OpenAI SDK and the Vercel AI SDK against an API without a running worker: requests stay queued. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateImage } from 'ai';
import OpenAI, { APIConnectionTimeoutError, APIUserAbortError, UnprocessableEntityError } from 'openai';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { onlyId, stateOf, storedIds } from '../../apps/api/src/testing/generate.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { openTestApi } from '../../apps/api/src/testing/test-api.ts';

const model = 'tiny';
const prompt = 'a red apple on a white background';

async function openWaiting() {
  const test = await openTestApi();
  await startWorker(test.store);
  const { url } = await listen(test);
  const cancel = (id: string) => fetch(`${url}/v1/predict/${id}`, { method: 'DELETE' });
  return { url, store: test.store, client: new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' }), cancel };
}

/** Returns the error that a call throws. Attaches its handler at once, so a rejection is never unhandled. */
function errorOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable('it went well'),
    (error: unknown) => error,
  );
}

it('aborting an OpenAI SDK call cancels its request', async () => {
  const { store, client } = await openWaiting();
  const abort = new AbortController();
  const failing = errorOf(client.images.generate({ prompt }, { signal: abort.signal }));
  const id = await onlyId(store);
  abort.abort();
  expect(await failing).toBeInstanceOf(APIUserAbortError);
  await expect.poll(() => stateOf(store, id)).toBe('canceled');
});

it('cancels both requests of an OpenAI SDK call that times out, is retried and times out again', async () => {
  const { store, client } = await openWaiting();
  let calls = 0;
  const counted: typeof fetch = (...args) => {
    calls++;
    return fetch(...args);
  };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const options = { maxRetries: 1, timeout: 6000, fetch: counted };
  const failing = errorOf(client.withOptions(options).images.generate({ prompt }));
  await onlyId(store);
  vi.advanceTimersByTime(options.timeout);
  // The SDK waits before it retries.
  await expect
    .poll(() => {
      if (calls < 2) vi.advanceTimersByTime(100);
      return calls;
    })
    .toBe(2);
  await expect.poll(() => storedIds(store)).toHaveLength(2);
  vi.advanceTimersByTime(options.timeout);
  expect(await failing).toBeInstanceOf(APIConnectionTimeoutError);
  const ids = await storedIds(store);
  await expect.poll(() => Promise.all(ids.map((id) => stateOf(store, id)))).toEqual(['canceled', 'canceled']);
});

it('the OpenAI SDK does not retry a request that ends without an image', async () => {
  const { store, client, cancel } = await openWaiting();
  const failing = errorOf(client.images.generate({ prompt }));
  const id = await onlyId(store);
  await cancel(id);
  expect(await failing).toBeInstanceOf(UnprocessableEntityError);
  expect(await failing).toMatchObject({ code: 'request_canceled', type: 'generation_error', requestID: id });
  expect(await storedIds(store)).toEqual([id]);
});

it('an OpenAI SDK stream that ends without an image throws and is not retried', async () => {
  const { store, client, cancel } = await openWaiting();
  const stream = await client.images.generate({ prompt, stream: true });
  const id = await onlyId(store);
  const failing = errorOf(stream[Symbol.asyncIterator]().next());
  await cancel(id);
  expect(await failing).toMatchObject({ code: 'request_canceled', type: 'generation_error', requestID: id });
  expect(await storedIds(store)).toEqual([id]);
});

it('the Vercel AI SDK does not retry a request that ends without an image', async () => {
  const { url, store, cancel } = await openWaiting();
  const darkroom = createOpenAICompatible({ name: 'darkroom', baseURL: `${url}/v1` });
  const failing = errorOf(generateImage({ model: darkroom.imageModel(model), prompt }));
  const id = await onlyId(store);
  await cancel(id);
  expect(await failing).toMatchObject({ statusCode: 422, message: `Request ${id} was canceled.` });
  expect(await storedIds(store)).toEqual([id]);
});
