/** Responses and events of the API against the schemas of /openapi.json, from which the types of the client come. */
import { createClient } from '@darkroom/client';
import { expireRequests } from '@darkroom/store';
import { backdateRequest, testEnvelope } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { runNext, startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { end, logprobOf, openTextApi, writeTokens } from '../../apps/api/src/testing/open-text-api.ts';
import { readFrames } from '../../apps/api/src/testing/sse-reader.ts';
import { openTestApi, type TestApi } from '../../apps/api/src/testing/test-api.ts';
import { acceptedSchema, cancelSchema, modelSchema, requestSchema } from '../../apps/api/src/openapi/api-schemas.ts';
import { eventSchema } from '../../apps/api/src/openapi/event-schemas.ts';

function clientOf({ api }: TestApi) {
  return createClient({ baseUrl: 'http://localhost', fetch: async (url, init) => api.request(url, init) });
}

/** Returns the types of the request's events after checking each event against its schema. */
async function eventTypes(test: TestApi, id: string): Promise<string[]> {
  const frames = await readFrames(await test.api.request(`/v1/predict/${id}/events`)).rest();
  expect(frames.pop()).toEqual({ data: '[DONE]' });
  return frames.map((frame) => {
    const data = JSON.parse(frame.data!) as object;
    expect(frame.id).toMatch(/^\d+-0$/);
    return eventSchema.parse({ type: frame.event, id: frame.id, ...data }).type;
  });
}

it('responses and events of a successful request for images match their schemas', async () => {
  const test = await openTestApi();
  const client = clientOf(test);
  await startWorker(test.store);
  expect((await client.models()).map((model) => modelSchema.parse(model).id)).toEqual(['tiny']);
  const { request_id: id } = acceptedSchema.parse(await client.submit({ prompt: 'a fox', n: 2 }));
  expect(requestSchema.parse(await client.get(id)).status).toBe('queued');
  const run = await runNext(test.store);
  await run.progress(1, Uint8Array.of(1, 2, 3));
  await run.progress(2);
  await run.output(0, Buffer.from('an image'), 6);
  expect(requestSchema.parse(await client.get(id)).status).toBe('running');
  await run.output(1, Buffer.from('another'));
  await run.finish();
  const ended = requestSchema.parse(await client.wait(id));
  expect([ended.status, ended.parameters.prompt]).toEqual(['succeeded', 'a fox']);
  expect(await eventTypes(test, id)).toEqual([
    'queued',
    'started',
    'progress',
    'progress',
    'image',
    'image',
    'image',
    'succeeded',
  ]);
  const images = await client.images(id);
  expect(images.map(({ data }) => Buffer.from(data).toString())).toEqual(['an image', 'another']);
});

it('responses and events of a successful request for texts match their schemas', async () => {
  const test = await openTextApi();
  const client = clientOf(test);
  const models = (await client.models()).map((model) => modelSchema.parse(model).kind);
  expect(models.toSorted()).toEqual(['image', 'text']);
  const { request_id: id } = await client.submit({ model: 'writer', prompt: 'a fox', logprobs: true, max_tokens: 9 });
  const run = await runNext(test.store, 'writer');
  await writeTokens(run, ['a fox', logprobOf(' on', -0.5, [{ token: ' in', logprob: -2, bytes: [32, 105, 110] }])]);
  await run.entry({ type: 'reset', offset: 2 });
  await run.entry({ type: 'snapshot', offset: 2, text: '░at', facts: { ids: '5,6,', calls: 1 } });
  await run.entry({ type: 'delta', offset: 2, text: 'cat', done: 3 });
  await end(run, 'a cat', { stop: '.' });
  await run.finish();
  expect(requestSchema.parse(await client.wait(id))).toMatchObject({ status: 'succeeded', texts: [{ text: 'a cat' }] });
  const types = ['queued', 'started', 'delta', 'delta', 'reset', 'snapshot', 'delta', 'text', 'succeeded'];
  expect(await eventTypes(test, id)).toEqual(types);
});

it('responses and events of failed, canceled and expired requests match their schemas', async () => {
  const test = await openTestApi({ config: { storePrompts: false } });
  const client = clientOf(test);
  await startWorker(test.store);
  const failed = await test.submit();
  await (await runNext(test.store)).finish({ state: 'failed', error: { code: 'engine_failed', message: 'it broke' } });
  expect(requestSchema.parse(await client.wait(failed))).toMatchObject({
    status: 'failed',
    parameters: { prompt: null },
  });
  expect(await eventTypes(test, failed)).toEqual(['queued', 'started', 'failed']);
  const canceled = await test.submit();
  expect(cancelSchema.parse(await client.cancel(canceled)).status).toBe('canceled');
  expect(await eventTypes(test, canceled)).toEqual(['queued', 'canceled']);
  const expired = await test.submit({ timeout_s: 0.1 });
  await backdateRequest(test.store, testEnvelope({ id: expired }), 100);
  await expireRequests(test.store, 'tiny');
  expect(await eventTypes(test, expired)).toEqual(['queued', 'expired']);
});
