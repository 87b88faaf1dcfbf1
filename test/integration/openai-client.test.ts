/** OpenAI's SDK and the Vercel AI SDK, as they come, on an API where nothing is drawn: what is asked for waits. */
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

/** What a call throws, taken at once: it may throw while the test looks elsewhere. */
function errorOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable('it went well'),
    (error: unknown) => error,
  );
}

it('aborting an answer cancels its request', async () => {
  const { store, client } = await openWaiting();
  const abort = new AbortController();
  const failing = errorOf(client.images.generate({ prompt }, { signal: abort.signal }));
  const id = await onlyId(store);
  abort.abort();
  expect(await failing).toBeInstanceOf(APIUserAbortError);
  await expect.poll(() => stateOf(store, id)).toBe('canceled');
});

it('an SDK whose patience is over, twice, leaves nothing to be drawn', async () => {
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
  // Before it asks again it waits.
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

it('a request that ends without a picture is sent once', async () => {
  const { store, client, cancel } = await openWaiting();
  const failing = errorOf(client.images.generate({ prompt }));
  const id = await onlyId(store);
  await cancel(id);
  expect(await failing).toBeInstanceOf(UnprocessableEntityError);
  expect(await failing).toMatchObject({ code: 'request_canceled', type: 'generation_error', requestID: id });
  expect(await storedIds(store)).toEqual([id]);
});

it('a stream that ends without a picture throws, and is sent once', async () => {
  const { store, client, cancel } = await openWaiting();
  const stream = await client.images.generate({ prompt, stream: true });
  const id = await onlyId(store);
  const failing = errorOf(stream[Symbol.asyncIterator]().next());
  await cancel(id);
  expect(await failing).toMatchObject({ code: 'request_canceled', type: 'generation_error', requestID: id });
  expect(await storedIds(store)).toEqual([id]);
});

it('the Vercel AI SDK sends once what ends without a picture', async () => {
  const { url, store, cancel } = await openWaiting();
  const darkroom = createOpenAICompatible({ name: 'darkroom', baseURL: `${url}/v1` });
  const failing = errorOf(generateImage({ model: darkroom.imageModel(model), prompt }));
  const id = await onlyId(store);
  await cancel(id);
  expect(await failing).toMatchObject({ statusCode: 422, message: `Request ${id} was canceled.` });
  expect(await storedIds(store)).toEqual([id]);
});
