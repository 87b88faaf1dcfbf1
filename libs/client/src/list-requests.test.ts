import { expect, it } from 'vitest';
import { collect, openClient } from './testing/open-client.ts';
import { bytes, errorAnswer, json, reset } from './testing/scripted-server.ts';

const page = (ids: readonly string[], next: string | null) =>
  json(200, { object: 'list', data: ids.map((request_id) => ({ request_id })), next_cursor: next });

it('list yields the requests of all pages, over an empty page and a broken connection', async () => {
  const test = await openClient([
    page(['tiny-3', 'tiny-2'], '2.tiny-2'),
    reset,
    page([], '1.tiny'),
    page(['tiny-1'], null),
  ]);
  const listed = await collect(test.client.list());
  expect(listed.map(({ request_id }) => request_id)).toEqual(['tiny-3', 'tiny-2', 'tiny-1']);
  const second = '/v1/predict?limit=100&cursor=2.tiny-2';
  expect(test.requests.map(({ path }) => path)).toEqual([
    '/v1/predict?limit=100',
    second,
    second,
    '/v1/predict?limit=100&cursor=1.tiny',
  ]);
});

it('list sends its filters, and fetches no page before the loop gets there', async () => {
  const test = await openClient([page(['tiny-3'], '3.tiny-3'), page(['tiny-2'], '2.tiny-2')]);
  const [createdAfter, createdBefore] = [new Date(0), new Date(1000)];
  const options = { model: 'tiny', status: ['queued', 'running'] as const, createdAfter, createdBefore, pageSize: 1 };
  for await (const { request_id } of test.client.list(options)) if (request_id === 'tiny-3') break;
  expect(test.requests).toHaveLength(1);
  const { searchParams } = new URL(test.requests[0]!.path, 'http://server');
  expect(Object.fromEntries(searchParams)).toEqual({
    limit: '1',
    model: 'tiny',
    status: 'queued,running',
    created_after: '1970-01-01T00:00:00.000Z',
    created_before: '1970-01-01T00:00:01.000Z',
  });
});

it('pin and unpin return when the request expires, also after a broken connection', async () => {
  const answer = { request_id: 'tiny-1', is_pinned: true, expires_at: '1970-01-31T00:00:00.000Z' };
  const test = await openClient([reset, json(200, answer), json(200, answer), errorAnswer(409, 'request_not_ended')]);
  expect([await test.client.pin('tiny-1'), await test.client.unpin('tiny-1')]).toEqual([answer, answer]);
  await expect(test.client.pin('tiny-1')).rejects.toMatchObject({ status: 409, code: 'request_not_ended' });
  const path = '/v1/predict/tiny-1/pin';
  const calls = test.requests.map((request) => `${request.method} ${request.path}`);
  expect(calls).toEqual([`PUT ${path}`, `PUT ${path}`, `DELETE ${path}`, `PUT ${path}`]);
});

it('zip returns a file', async () => {
  const test = await openClient([bytes(Uint8Array.from([80, 75]))]);
  const file = await test.client.zip(['tiny-1', 'tiny-2']);
  expect(new Uint8Array(await file.arrayBuffer())).toEqual(Uint8Array.from([80, 75]));
  expect(test.requests.map(({ path }) => path)).toEqual(['/v1/predict/zip?ids=tiny-1%2Ctiny-2']);
});
