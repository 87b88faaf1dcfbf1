import { expect, it } from 'vitest';
import { collect, openClient } from './testing/open-client.ts';
import { json, reset } from './testing/scripted-server.ts';

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
