import { expect, it } from 'vitest';
import { openTestApi } from '../testing/test-api.ts';

it.each([
  ['/nowhere', 404],
  ['/v1/chat/completions', 400],
  ['/v1/images/generations', 400],
  ['/v1/predict/nothing', 405],
])('an error of %s has an X-Request-Id that is also in the log', async (path, status) => {
  const { api, lines } = await openTestApi();
  const answer = await api.request(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '[]',
  });
  const id = answer.headers.get('x-request-id');
  expect([answer.status, id]).toEqual([status, expect.stringMatching(/^[\w-]{36}$/)]);
  expect(lines.filter((line) => line.includes(id!))).toHaveLength(1);
});
