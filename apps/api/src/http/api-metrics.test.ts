/** Metrics of an API process. */
import { Metrics } from '@darkroom/service';
import { type Exposition, parseExposition, silentLogger } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { listen } from '../testing/listen.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';

async function openMeasuredApi(
  options: TestApiOptions = {},
): Promise<{ test: TestApi; read: () => Promise<Exposition> }> {
  const metrics = new Metrics({ app: 'api', log: silentLogger() });
  const test = await openTestApi({ ...options, metrics });
  return { test, read: async () => parseExposition(await metrics.expose()) };
}

/** Returns the number of answers by key, such as `GET /v1/models 200`. */
function answers(page: Exposition): Record<string, number> {
  const series = page.series('darkroom_http_request_seconds_count');
  return Object.fromEntries(
    series.map(({ labels: { method, route, status }, value }) => [`${method} ${route} ${status}`, value]),
  );
}

it('labels answers with the pattern of their route, never with the path of a client', async () => {
  const { test, read } = await openMeasuredApi();
  const id = await test.submit();
  await test.api.request(`/v1/predict/${id}`);
  await test.api.request('/v1/predict/tiny-00000000000000000000000000');
  await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  await test.post({ prompt: 7 });
  for (const path of ['/secret-1', '/secret-2', '/v1/predict/a/b/c/d']) await test.api.request(path);
  await test.api.request('/v1/models', { method: 'PATCH' });
  await test.api.request('/v1/models', { method: 'BREW' });
  expect(answers(await read())).toEqual({
    'POST /v1/predict 202': 1,
    'POST /v1/predict 400': 1,
    'GET /v1/predict/:id 202': 1,
    'GET /v1/predict/:id 404': 1,
    'DELETE /v1/predict/:id 200': 1,
    'GET none 404': 3,
    'PATCH none 405': 1,
    'other none 405': 1,
  });
});

it('counts submissions by outcome', async () => {
  const { test, read } = await openMeasuredApi({ config: { queueMaxLength: 2 } });
  await test.submit();
  await test.submit();
  expect((await test.post({ prompt: 'a fox' })).status).toBe(503);
  expect((await test.post({ prompt: 'a fox', steps: 'many' })).status).toBe(400);
  const page = await read();
  const submissions = (outcome: string): number | undefined =>
    page.value('darkroom_submissions_total', { app: 'api', model: 'tiny', outcome });
  expect([submissions('admitted'), submissions('overloaded')]).toEqual([2, 1]);
});

it('counts rate-limited submissions without the names of keys', async () => {
  const key = { name: 'alice', weight: 1, requestsPerMinute: 1, openRequests: undefined, isAdmin: false };
  const { test, read } = await openMeasuredApi({ apiKeys: new Map([[hashKey('secret'), key]]) });
  const headers = { Authorization: 'Bearer secret', 'Content-Type': 'application/json' };
  const body = JSON.stringify({ prompt: 'a fox' });
  const statuses = [];
  for (let sent = 0; sent < 3; sent++)
    statuses.push((await test.api.request('/v1/predict', { method: 'POST', headers, body })).status);
  expect(statuses).toEqual([202, 429, 429]);
  const page = await read();
  expect(page.value('darkroom_rate_limited_total', { app: 'api' })).toBe(2);
  expect([...page.types.keys()].flatMap((name) => page.series(name))).not.toContainEqual(
    expect.objectContaining({ labels: expect.objectContaining({ owner: 'alice' }) }),
  );
});

it('gauges open event streams until they end or the client disconnects', async () => {
  const { test, read } = await openMeasuredApi();
  const { url } = await listen(test);
  const open = async (): Promise<number | undefined> =>
    (await read()).value('darkroom_event_streams', { app: 'api', route: '/v1/predict/:id/events' });
  const id = await test.submit();
  const leaving = new AbortController();
  const readers = await Promise.all([
    fetch(`${url}/v1/predict/${id}/events`, { signal: leaving.signal }),
    fetch(`${url}/v1/predict/${id}/events`),
  ]);
  for (const reader of readers) expect(reader.status).toBe(200);
  expect(await open()).toBe(2);
  leaving.abort();
  await expect.poll(open).toBe(1);
  await fetch(`${url}/v1/predict/${id}`, { method: 'DELETE' });
  await readFrames(readers[1]).rest();
  await expect.poll(open).toBe(0);
});
