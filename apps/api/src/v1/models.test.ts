import { createRequestId } from '@darkroom/core';
import { connectStore, publishModel, reportLoadFailure } from '@darkroom/store';
import { openTestStore } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { healthSchema, modelListSchema, modelSchema } from '../openapi/api-schemas.ts';
import { startWorker } from '../testing/fake-worker.ts';
import { cardWith, card, cardWithLoras, createTestApi, openTestApi, type TestApi } from '../testing/test-api.ts';

async function health(test: TestApi): Promise<unknown[]> {
  const response = await test.api.request('/health');
  const body = healthSchema.parse(await response.json());
  return [response.status, body.status, body.worker_pool_initialized, body.active_workers, body.model_loaded];
}

it('/health distinguishes no worker, one loading, some loading and all ready', async () => {
  const empty = createTestApi({ store: openTestStore() });
  expect(await health(empty)).toEqual([200, 'degraded', false, 0, false]);
  let nowMs = Date.now();
  const test = await openTestApi({ clock: { now: () => nowMs } });
  expect(await health(test)).toEqual([200, 'degraded', false, 0, false]);
  await startWorker(test.store, { workerId: 'w1', state: 'loading' });
  nowMs += 1000;
  expect(await health(test)).toEqual([200, 'degraded', true, 0, false]);
  await startWorker(test.store, { workerId: 'w2' });
  nowMs += 1000;
  expect(await health(test)).toEqual([200, 'degraded', true, 1, false]);
  await startWorker(test.store, { workerId: 'w1' });
  nowMs += 1000;
  expect(await health(test)).toEqual([200, 'ok', true, 2, true]);
});

it('/health lists the kinds that live workers serve', async () => {
  let nowMs = Date.now();
  const test = await openTestApi({ clock: { now: () => nowMs } });
  const kinds = async () => {
    nowMs += 1000;
    return healthSchema.parse(await (await test.api.request('/health')).json()).kinds;
  };
  expect(await kinds()).toEqual([]);
  await startWorker(test.store, { workerId: 'w1', state: 'loading' });
  expect(await kinds()).toEqual([]);
  await startWorker(test.store, { workerId: 'w1' });
  expect(await kinds()).toEqual(['image']);
});

it('/health lists models that failed to load, beside workers that serve', async () => {
  const test = await openTestApi();
  await startWorker(test.store, { workerId: 'w1' });
  const place = { model: 'broken', host: 'box' };
  await reportLoadFailure(test.store, place, { reason: 'unet/config.json: is missing', shownMs: 60_000 });
  const response = await test.api.request('/health');
  expect(response.status).toBe(200);
  expect(healthSchema.parse(await response.json())).toEqual({
    status: 'degraded',
    worker_pool_initialized: true,
    active_workers: 1,
    model_loaded: true,
    concurrent_support: true,
    kinds: ['image'],
    failed_to_load: [{ model: 'broken', reason: 'failed to load: unet/config.json: is missing' }],
  });
});

it('/v1/models lists the capabilities of each model', async () => {
  let nowMs = Date.now();
  const test = await openTestApi({ clock: { now: () => nowMs } });
  const view = {
    id: 'tiny',
    object: 'model',
    created: 1_700_000_000,
    owned_by: 'tests',
    is_possible: false,
    is_paused: false,
    kind: 'image',
    pipeline: 'StableDiffusionPipeline',
    sizes: { multiple: 32, min: 64, max: 256 },
    steps: { min: 1, max: 200 },
    guidance: { min: 1, max: 20 },
    schedulers: ['ddim', 'euler'],
    max_prompt_tokens: 77,
    prompt_syntaxes: ['plain'],
    upscales: [],
    safety_checker: null,
    defaults: { size: '128x128', num_inference_steps: 12, guidance_scale: 3, scheduler: 'ddim' },
  };
  const list = await test.api.request('/v1/models');
  expect(modelListSchema.parse(await list.json())).toEqual({ object: 'list', data: [view] });
  await publishModel(test.store, cardWithLoras);
  nowMs += 60_000;
  const styled = await test.api.request('/v1/models/tiny');
  expect(modelSchema.parse(await styled.json())).toEqual({ ...view, loras: cardWithLoras.loras });
  await publishModel(test.store, card);
  await startWorker(test.store, { state: 'loading' });
  nowMs += 1000;
  const one = await test.api.request('/v1/models/tiny');
  expect(modelSchema.parse(await one.json())).toEqual({ ...view, is_possible: true });
  const none = await test.api.request('/v1/models/sdxl');
  expect([none.status, errorSchema.parse(await none.json()).error.code]).toEqual([404, 'model_not_found']);
});

it('/v1/models lists upscale factors and the action of the safety checker', async () => {
  const test = await openTestApi();
  await publishModel(test.store, cardWith({ upscales: [2, 4], safetyChecker: 'refuse' }));
  const model = modelSchema.parse(await (await test.api.request('/v1/models/tiny')).json());
  expect(model).toMatchObject({ upscales: [2, 4], safety_checker: 'refuse' });
});

it('answers 503 in time without Redis, and stores nothing later', async () => {
  const store = connectStore({ url: 'unix:///nonexistent/redis.sock' });
  onTestFinished(() => store.redis.disconnect());
  const test = createTestApi({ store, storeWaitMs: 30 });
  expect(await health(test)).toEqual([503, 'unavailable', false, 0, false]);
  const id = createRequestId({ model: 'tiny', owner: '', secret: 'any', nowMs: 1 });
  const paths = ['/v1/models', `/v1/predict/${id}`, `/v1/predict/${id}/events`, `/v1/predict/${id}/images/0`];
  const responses = [
    await test.post({ prompt: 'x' }),
    await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' }),
    ...(await Promise.all(paths.map(async (path) => test.api.request(path)))),
  ];
  for (const response of responses) {
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(errorSchema.parse(await response.json()).error).toMatchObject({
      type: 'service_unavailable',
      code: 'unavailable',
    });
  }
});
