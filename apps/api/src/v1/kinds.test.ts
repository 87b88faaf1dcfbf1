/** Routes are kind-neutral: tested with `echo`, a text kind of libs/testing, beside images. */
import type { ModelCard } from '@darkroom/core';
import { createKinds, imageKind } from '@darkroom/kinds';
import { admitRequest, type EventHub, heartbeatWorker, publishModel, readRequest } from '@darkroom/store';
import { echo, echoCard, testEnvelope } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { type RunningRequest, runNext, startWorker } from '../testing/fake-worker.ts';
import { type Frame, readFrames, type SseReader } from '../testing/sse-reader.ts';
import { openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';

const prompt = 'say something about foxes';
const model = echoCard.id;

async function openBoth(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTestApi({ ...options, kinds: createKinds([imageKind, echo]) });
  await publishModel(test.store, echoCard);
  await startWorker(test.store, { model });
  return test;
}

async function run(test: TestApi): Promise<{ id: string; running: RunningRequest }> {
  const id = await test.submit({ model, prompt });
  return { id, running: await runNext(test.store, model) };
}

async function poll(test: TestApi, id: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await test.api.request(`/v1/predict/${id}`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function open({ api }: TestApi, id: string, after = ''): Promise<SseReader> {
  return readFrames(await api.request(`/v1/predict/${id}/events?after=${after}`));
}

/** Returns name and data of an event, without the fields that all events have. */
function shown({ event, data }: Frame): unknown[] {
  const { request_id: _id, timestamp: _time, ...rest } = JSON.parse(data ?? '') as Record<string, unknown>;
  return [event, rest];
}

function withoutSnapshots(hub: EventHub): EventHub {
  const subscribe: EventHub['subscribe'] = (id, listener) =>
    hub.subscribe(id, (event) => event.type === 'snapshot' || listener(event));
  return {
    ...hub,
    subscribe,
    get size() {
      return hub.size;
    },
  };
}

async function statusOf({ api }: TestApi, path: string, init?: RequestInit): Promise<number> {
  return (await api.request(path, init)).status;
}

describe('a request of another kind', () => {
  it('is stored with the fields, cost and slots of its kind', async () => {
    const test = await openBoth();
    const id = await test.submit({ model, prompt, priority: 2, timeout_s: 60 });
    const stored = await test.store.redis.get(test.store.keysOf(model).input(id));
    expect(JSON.parse(stored!)).toMatchObject({
      kind: 'echo',
      shapeKey: 'echo',
      outputs: 1,
      slots: 3,
      cost: 25,
      priority: 2,
      input: { prompt },
    });
    const bad = await test.post({ model, prompt: 'x'.repeat(51), n: 2 });
    expect([bad.status, await bad.json()]).toMatchObject([
      400,
      { message: expect.stringContaining('n is not a field') },
    ]);
    const long = await test.post({ model, prompt: 'x'.repeat(51), timeout_s: 99_999 });
    expect(await long.json()).toMatchObject({
      message: 'prompt is longer than 50; timeout_s is 99999, expected a number of seconds from 0.1 to 86400',
    });
  });

  it('is formatted by its kind in polls, while it runs and after its end', async () => {
    const test = await openBoth();
    const { id, running } = await run(test);
    expect(await poll(test, id)).toMatchObject({ status: 202, body: { status: 'running', prompt, text: '' } });
    await running.entry({ type: 'delta', offset: 0, text: 'foxes ' });
    await running.entry({ type: 'delta', offset: 6, text: 'are' });
    await running.progress(9);
    expect((await poll(test, id)).body).toMatchObject({ text: 'foxes are', characters: 9, finish_reason: null });
    await running.entry({ type: 'reset', offset: 6 });
    await running.entry({ type: 'snapshot', offset: 6, text: 'were' });
    await running.output(0, Buffer.from('foxes were'), 100, { finishReason: 7 });
    await running.finish();
    const { status, body } = await poll(test.replica(), id);
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'succeeded', text: 'foxes were', finish_reason: 7, request_id: id });
    expect(Object.keys(body)).not.toContain('images');
  });

  it('is formatted by its kind in streams', async () => {
    const test = await openBoth();
    const { id, running } = await run(test);
    const reader = await open(test, id);
    await running.progress(1);
    await running.entry({ type: 'delta', offset: 0, text: 'foxes' });
    await running.entry({ type: 'snapshot', offset: 0, text: 'a fox' });
    await running.entry({ type: 'reset', offset: 2 });
    await running.output(0, Buffer.from('a '), 100);
    await running.finish();
    const frames = await reader.rest();
    expect(frames.pop()).toEqual({ data: '[DONE]' });
    expect(frames.map((frame) => shown(frame))).toEqual([
      ['queued', { queue_position: 0, attempt: 1 }],
      ['started', { attempt: 1 }],
      ['progress', { characters: 1 }],
      ['delta', { offset: 0, text: 'foxes' }],
      ['snapshot', { offset: 0, text: 'a fox' }],
      ['reset', { offset: 2 }],
      ['text', { bytes: 2 }],
      ['succeeded', { finish_reason: null }],
    ]);
  });

  it('continues in a stream across the gap of a compacted log', async () => {
    // Without the snapshot's message, readers see a gap at the next event.
    const test = await openBoth({ wrapHub: withoutSnapshots });
    const { id, running } = await run(test);
    for (const [offset, text] of ['f', 'o', 'x', 'e', 's'].entries())
      await running.entry({ type: 'delta', offset, text });
    const live = await open(test, id);
    const before = [await live.next(), await live.next(), await live.next(), await live.next()];
    expect(before.at(-1)!.id).toBe('4-0');
    const { redis } = test.store;
    await redis.xdel(test.store.keysOf(model).events(id), '3-0', '4-0', '5-0', '6-0', '7-0');
    await running.entry({ type: 'snapshot', offset: 0, text: 'foxes' });
    await running.entry({ type: 'delta', offset: 5, text: ' are' });
    await running.finish();
    // Text read before the compaction may be sent again; clients drop it by its offset.
    const ids = (await live.rest()).map((frame) => frame.id);
    expect(ids.slice(-4)).toEqual(['8-0', '9-0', '10-0', undefined]);
    const resumed = await (await open(test.replica(), id, '4-0')).rest();
    expect(resumed.slice(0, 2).map((frame) => shown(frame))).toEqual([
      ['snapshot', { offset: 0, text: 'foxes' }],
      ['delta', { offset: 5, text: ' are' }],
    ]);
    expect(resumed.map((frame) => frame.id)).toEqual(['8-0', '9-0', '10-0', undefined]);
    expect((await poll(test, id)).body).toMatchObject({ text: 'foxes are' });
  });

  it('stores no private fields after its end if STORE_PROMPTS is off, and never logs them', async () => {
    const test = await openBoth({ config: { storePrompts: false } });
    const { id, running } = await run(test);
    await running.finish();
    await test.store.redis.del(test.store.keysOf(model).inbox('w1'));
    expect((await poll(test, id)).body).toMatchObject({ status: 'succeeded', prompt: null });
    const request = await test.store.redis.hgetall(test.store.keysOf(model).request(id));
    expect(request).toMatchObject({ state: 'succeeded' });
    const input = await test.store.redis.get(test.store.keysOf(model).input(id));
    expect(JSON.stringify(request) + input).not.toContain('foxes');
    expect(test.lines.join('\n')).not.toContain('foxes');
  });

  it('has eta_seconds by its own steps once its workers have measured their throughput', async () => {
    const test = await openBoth();
    const pace = { costMs: { fast: 1, slow: 2 }, stepMs: { fast: 100, slow: 200 }, remainingCost: 0 };
    const identity = { shard: model, workerId: 'w1', incarnation: 'first' };
    await heartbeatWorker(test.store, identity, { pace });
    const { id } = await run(test);
    // 25 characters, one per step.
    expect((await poll(test, id)).body).toMatchObject({ eta_seconds: { min: 2.5, max: 5 } });
  });

  it('is not visible on image routes', async () => {
    const test = await openBoth();
    const { id } = await run(test);
    const headers = { 'Content-Type': 'application/json' };
    const ask = { method: 'POST', headers, body: JSON.stringify({ model, prompt }) };
    expect(await statusOf(test, '/v1/images/generations', ask)).toBe(404);
    expect(await statusOf(test, `/fal/queue/me/${model}`, { ...ask, body: JSON.stringify({ prompt }) })).toBe(404);
    expect(await statusOf(test, `/v1/predict/${id}/images/0`)).toBe(404);
    expect(await statusOf(test, `/fal/queue/me/${model}/requests/${id}/status`)).toBe(404);
    expect(await statusOf(test, `/replicate/v1/predictions/${id}`)).toBe(404);
    expect(await statusOf(test, `/replicate/v1/predictions/${id}/cancel`, { method: 'POST', headers })).toBe(404);
    expect((await poll(test, id)).body).toMatchObject({ status: 'running', is_canceling: false });
    const models = (await (await test.api.request('/replicate/v1/models')).json()) as { results: { name: string }[] };
    expect(models.results.map(({ name }) => name)).toEqual(['tiny']);
  });

  it('does not affect the default model of image routes', async () => {
    const test = await openBoth({ config: { defaultModel: model } });
    const response = await test.api.request('/v1/images/generations', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ prompt: 'a fox', n: 11 }),
    });
    // Rejected by the schema of the image model.
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param: 'n' } }]);
    expect((await test.post({ prompt: 'a fox' })).status).toBe(202);
  });
});

it('lists each model with the fields of its kind', async () => {
  const test = await openBoth();
  const { data } = (await (await test.api.request('/v1/models')).json()) as { data: Record<string, unknown>[] };
  expect(data.map(({ id }) => id)).toEqual([model, 'tiny']);
  expect(data[0]).toMatchObject({ pipeline: 'EchoPipeline', max_characters: 50 });
  expect(data[0]).not.toHaveProperty('steps');
  expect(data[1]).toMatchObject({ steps: { min: 1, max: 200 } });
});

describe('a kind of a newer version that this server does not support', () => {
  const card: ModelCard = { ...echoCard, id: 'cinema', kind: 'video' };

  it('is listed without its own fields, and accepts no requests', async () => {
    const test = await openBoth();
    await publishModel(test.store, card);
    expect(await statusOf(test, '/v1/models/cinema')).toBe(200);
    const response = await test.post({ model: 'cinema', prompt: 'x' });
    expect([response.status, await response.json()]).toMatchObject([
      503,
      {
        error: {
          code: 'kind_unknown',
          message: 'model cinema has the kind "video", which this server does not support.',
        },
      },
    ]);
  });

  it('has its requests shown and followed without its own fields', async () => {
    const test = await openBoth();
    await publishModel(test.store, card);
    await startWorker(test.store, { model: 'cinema' });
    const envelope = testEnvelope({ model: 'cinema', kind: 'video' });
    await admitRequest(test.store, envelope, { queueMaxLength: 9, unserved: 'accept' });
    const running = await runNext(test.store, 'cinema');
    await running.progress(1);
    expect((await poll(test, envelope.id)).body).toMatchObject({ status: 'running', model: 'cinema' });
    const reader = await open(test, envelope.id);
    await running.entry({ type: 'delta', offset: 0, text: 'x' });
    await running.finish();
    const frames = (await reader.rest()).slice(0, -1).map((frame) => shown(frame));
    expect(frames.slice(2)).toEqual([
      ['progress', {}],
      ['delta', {}],
      ['succeeded', {}],
    ]);
    expect(await readRequest(test.store, envelope.id)).toMatchObject({ request: { state: 'succeeded' } });
  });
});
