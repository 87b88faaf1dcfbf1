import { createRequestId, isTerminalState } from '@darkroom/core';
import type { z } from 'zod';
import { describe, expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { requestPageSchema } from '../openapi/api-schemas.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import { openImageAndTextApi, runNextText, textFacts, textModel } from '../testing/text-model.ts';

async function list({ api }: TestApi, query = '', headers: Record<string, string> = {}) {
  const response = await api.request(`/v1/predict${query}`, { headers });
  const body: unknown = await response.json();
  return response.status === 200 ? requestPageSchema.parse(body) : (body as z.infer<typeof requestPageSchema>);
}

function keyOf(name: string): string {
  return `${name}-key-0123456789`;
}

function headersOf(name: string): Record<string, string> {
  return { authorization: `Bearer ${keyOf(name)}`, 'content-type': 'application/json' };
}

async function errorOf({ api }: TestApi, query: string) {
  const response = await api.request(`/v1/predict${query}`);
  const { error } = (await response.json()) as { error: { code: string; message: string; param: string } };
  return { status: response.status, ...error };
}

describe('GET /v1/predict', () => {
  it('shows the state, prompt, images and urls of each request, newest first', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const first = await test.submit({ n: 2 });
    const run = await runNext(test.store);
    for (const index of [0, 1]) await run.output(index, Buffer.from('image'));
    await run.finish();
    const second = await test.submit({ prompt: 'p'.repeat(299) + '🦊' });
    const { data, next_cursor } = await list(test);
    expect(next_cursor).toBeNull();
    expect(data.map((each) => each.request_id)).toEqual([second, first]);
    const polled = (await (await test.api.request(`/v1/predict/${first}`)).json()) as (typeof data)[number];
    const { images, created_at, started_at, ended_at, expires_at, urls } = polled;
    expect(images).toHaveLength(2);
    expect(data[1]).toEqual({
      request_id: first,
      kind: 'image',
      model: 'tiny',
      status: 'succeeded',
      is_canceling: false,
      is_pinned: false,
      prompt: 'a fox',
      output_count: 2,
      created_at,
      started_at,
      ended_at,
      expires_at,
      images,
      urls,
    });
    expect(data[0]).toMatchObject({ status: 'queued', expires_at: null, images: [], prompt: 'p'.repeat(299) });
  });

  it('shows the last message of a conversation as the prompt, and no texts', async () => {
    const app = await openImageAndTextApi('autoregressive');
    const content = [
      { type: 'text', text: 'something' },
      { type: 'text', text: 'sweet' },
    ];
    const messages = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content },
    ];
    const id = await app.submit({ model: textModel, prompt: undefined, messages });
    const run = await runNextText(app);
    await run.output(
      0,
      Buffer.from('an apple'),
      100,
      textFacts({ finish_reason: 'stop', completion_tokens: 1, calls: 1 }),
    );
    await run.finish();
    const { data } = await list(app);
    expect(data).toMatchObject([
      { request_id: id, kind: 'text', status: 'succeeded', prompt: 'something', output_count: 1 },
    ]);
    expect(JSON.stringify(data)).not.toMatch(/apple|images/);
  });

  it('shows only requests of the same key, with signed links to their images', async () => {
    const names = ['ann', 'bob'];
    const unlimited = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
    const apiKeys = new Map(names.map((name) => [hashKey(keyOf(name)), { name, ...unlimited }]));
    const test = await openTestApi({ apiKeys });
    await startWorker(test.store);
    for (const name of names) {
      const init = { method: 'POST', headers: headersOf(name), body: JSON.stringify({ prompt: `a fox of ${name}` }) };
      expect((await test.api.request('/v1/predict', init)).status).toBe(202);
      const run = await runNext(test.store);
      await run.output(0, Buffer.from('image'));
      await run.finish();
    }
    const { data } = await list(test, '', headersOf('ann'));
    expect(data.map(({ prompt }) => prompt)).toEqual(['a fox of ann']);
    expect((await test.api.request(data[0]!.images![0]!.url)).status).toBe(200);
    // The place of another owner's request is no way into its list.
    const foreign = (await list(test, '', headersOf('bob'))).data[0]!;
    const cursor = `${Date.parse(foreign.created_at) + 1}.${foreign.request_id}`;
    const others = await list(test, `?cursor=${cursor}`, headersOf('ann'));
    expect(others.data.map(({ prompt }) => prompt)).toEqual(['a fox of ann']);
    expect((await test.api.request('/v1/predict')).status).toBe(401);
  });

  it('shows no prompt if prompts are not stored, also while the request is open', async () => {
    const test = await openTestApi({ config: { storePrompts: false } });
    const id = await test.submit({ prompt: 'my secret' });
    const shown = async () => JSON.stringify(await list(test));
    expect(await shown()).toContain(id);
    expect(await shown()).not.toContain('secret');
    await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
    expect(await shown()).not.toContain('secret');
  });

  it('gives pages of limit requests, and filters them by status, model and time', async () => {
    const test = await openTestApi();
    const ids: string[] = [];
    const times = new Map<string, string>();
    for (let index = 0; index < 5; index++) {
      const id = await test.submit();
      const view = await (await test.api.request(`/v1/predict/${id}`)).json();
      times.set(id, (view as { created_at: string }).created_at);
      ids.push(id);
    }
    // Requests of one millisecond are in the order of their ids.
    ids.sort((one, other) => (`${times.get(one)}${one}` < `${times.get(other)}${other}` ? -1 : 1));
    await test.api.request(`/v1/predict/${ids[2]}`, { method: 'DELETE' });
    const first = await list(test, '?limit=3');
    const second = await list(test, `?limit=3&cursor=${first.next_cursor}`);
    const idsOf = ({ data }: typeof first) => data.map((each) => each.request_id);
    expect([idsOf(first), idsOf(second)]).toEqual([ids.slice(2).toReversed(), ids.slice(0, 2).toReversed()]);
    expect(second.next_cursor).toBeNull();
    expect(idsOf(await list(test, '?status=canceled,failed'))).toEqual([ids[2]]);
    expect((await list(test, '?status=queued')).data.every(({ status }) => !isTerminalState(status))).toBe(true);
    expect(idsOf(await list(test, '?model=tiny'))).toHaveLength(5);
    expect(idsOf(await list(test, '?model=small'))).toEqual([]);
    const { created_at } = first.data[0]!;
    expect(idsOf(await list(test, `?created_after=${created_at}`))).toContain(ids[4]);
    expect(idsOf(await list(test, `?created_before=${created_at}`))).not.toContain(ids[4]);
    expect(idsOf(await list(test, '?created_before=2020-01-01T00:00:00%2B02:00'))).toEqual([]);
  });

  it.each([
    ['limit', '0', 'a whole number from 1 to 100'],
    ['limit', '101', 'a whole number from 1 to 100'],
    ['limit', 'ten', 'a whole number from 1 to 100'],
    ['cursor', 'zzz', 'next_cursor of an earlier page'],
    ['cursor', `1.${'x'.repeat(64)}`, 'next_cursor of an earlier page'],
    ['cursor', `-1.${createRequestId({ model: 'tiny', owner: '', secret: '', nowMs: 1 })}`, 'next_cursor of an'],
    ['model', '{tiny}', 'the id of a model'],
    ['status', 'done', 'queued, running, succeeded, failed, canceled, expired'],
    ['status', 'queued,queued,queued,queued,queued,queued,queued', 'queued, running'],
    ['created_after', 'yesterday', 'a time such as'],
    ['created_before', '2026-11-26', 'a time such as'],
  ])('refuses %s=%s with what it expects', async (field, value, expected) => {
    const error = await errorOf(await openTestApi(), `?${field}=${encodeURIComponent(value)}`);
    expect(error).toMatchObject({ status: 400, param: field, message: expect.stringContaining(expected) as unknown });
    expect(error.message).toContain(field);
  });
});
