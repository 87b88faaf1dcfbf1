import { modelOfRequestId } from '@darkroom/core';
import { pauseModel, publishModel, registerWorker, sweepWorkers } from '@darkroom/store';
import { openTestStore } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { startWorker } from '../testing/fake-worker.ts';
import { postJson, publishWriter, writer } from '../testing/open-text-api.ts';
import { cardWith, createTestApi, openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';

const images = '/v1/images/generations';
const chat = '/v1/chat/completions';

it.each([
  [images, 'image', { prompt: 'a fox' }],
  [images, 'image', { model: 'writer', prompt: 'a fox' }],
  [chat, 'text', { messages: [{ role: 'user', content: 'hi' }] }],
  [chat, 'text', { model: 'tiny', messages: [{ role: 'user', content: 'hi' }] }],
])('%s returns 404 if no model has the kind of the route: %s %j', async (path, kind, body) => {
  const test = path === images ? createTestApi({ store: openTestStore() }) : await openTestApi();
  if (path === images) await publishWriter(test.store);
  const response = await postJson(test, path, body);
  expect([response.status, errorSchema.parse(await response.json()).error]).toMatchObject([
    404,
    {
      code: 'model_not_found',
      param: 'model',
      message: `no model has the kind "${kind}", which this route serves`,
    },
  ]);
});

const messages = [{ role: 'user', content: 'hi' }];
const drawing = { num_inference_steps: 4, prompt: 'a fox' };

/** Opens an API with two models of each kind; the first of each (`a-draw`, `a-write`) has no worker. */
async function openFour(options: TestApiOptions = {}): Promise<TestApi> {
  const store = openTestStore();
  for (const id of ['a-draw', 'b-draw']) await publishModel(store, cardWith({ id }));
  await publishModel(store, { ...writer, id: 'a-write' });
  await publishWriter(store, { ...writer, id: 'b-write' });
  await startWorker(store, { model: 'b-draw' });
  return createTestApi({ store, ...options });
}

async function modelFor(test: TestApi, body: object): Promise<string | undefined> {
  const response = await test.post(body);
  const { request_id: id } = (await response.json()) as { request_id: string };
  expect(response.status).toBe(202);
  return modelOfRequestId(id);
}

it.each([
  ['messages', { messages }, 'b-write'],
  ['the fields of an image', drawing, 'b-draw'],
  ['a field of a text beside the prompt', { max_tokens: 4, prompt: 'x' }, 'b-write'],
  ['a prompt, which both kinds have', { prompt: 'a fox' }, 'b-draw'],
  ['a model by name that no worker serves', { ...drawing, model: 'a-draw' }, 'a-draw'],
])('chooses a served model of the kind whose fields the body has: %s', async (_what, body, expected) => {
  expect(await modelFor(await openFour(), body)).toBe(expected);
});

it('chooses the default model for bodies of its kind even without workers, and a served model for other kinds', async () => {
  const test = await openFour({ config: { defaultModel: 'a-draw' } });
  expect(await modelFor(test, drawing)).toBe('a-draw');
  expect(await modelFor(test, { prompt: 'a fox' })).toBe('a-draw');
  expect(await modelFor(test, { messages })).toBe('b-write');
});

it('skips paused models and models without heartbeats while another model is served', async () => {
  const store = openTestStore();
  for (const id of ['a', 'b', 'c']) await publishModel(store, cardWith({ id }));
  for (const model of ['a', 'b', 'c']) await startWorker(store, { model });
  await pauseModel(store, 'a');
  // After two sweeps without a heartbeat the workers count as silent; they are not reaped yet.
  for (let sweep = 0; sweep < 3; sweep++) await sweepWorkers(store, 'b', { intervalMs: 0, missedSweeps: 4 });
  expect(await modelFor(createTestApi({ store }), drawing)).toBe('c');
});

it('chooses the first model of the kind while none is served, and a served one as soon as a worker registers', async () => {
  const store = openTestStore();
  for (const id of ['a', 'b']) await publishModel(store, cardWith({ id }));
  const test = createTestApi({ store, clock: { now: () => 1_700_000_000_000 } });
  expect(await modelFor(test, drawing)).toBe('a');
  await registerWorker(
    store,
    { shard: 'b', workerId: 'w1', incarnation: 'first' },
    { state: 'ready', capacity: 8, info: {} },
  );
  expect(await modelFor(test, drawing)).toBe('b');
});
