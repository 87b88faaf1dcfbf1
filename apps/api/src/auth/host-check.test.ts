import { expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import { hashKey } from './api-keys.ts';
import type { ApiKey } from '../http/api-env.ts';

async function statusOf(test: TestApi, host: string, path = '/v1/webhooks/secret'): Promise<number> {
  return (await test.api.request(`http://${host}${path}`)).status;
}

const alice: ApiKey = {
  name: 'alice',
  weight: 1,
  requestsPerMinute: undefined,
  openRequests: undefined,
  isAdmin: false,
};

it.each(['127.0.0.1', '0.0.0.0'])('a server without keys on %s rejects other host names with 421', async (host) => {
  const test = await openTestApi({ config: { host } });
  const answers = test.api.routes.filter(({ method }) => method !== 'ALL');
  expect(answers.length).toBeGreaterThan(20);
  for (const { method, path } of answers) {
    const response = await test.api.request(`http://evil.example:8080${path}`, { method });
    expect([path, response.status]).toEqual([path, 421]);
  }
  const response = await test.api.request('http://evil.example:8080/v1/webhooks/secret');
  expect(errorSchema.parse(await response.json())).toMatchObject({
    message:
      'Host is "evil.example", expected localhost, an address, or a name of ALLOWED_HOSTS: this server requires no keys.',
    error: { code: 'wrong_host', type: 'invalid_request_error' },
  });
});

it('accepts localhost and IP addresses with any port', async () => {
  const test = await openTestApi();
  for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1:8080', '[::1]:8080', '192.168.1.5'])
    expect([host, await statusOf(test, host)]).toEqual([host, 200]);
  for (const host of ['localhost.evil.example', '127.0.0.1.evil.example', 'api'])
    expect([host, await statusOf(test, host)]).toEqual([host, 421]);
});

it('accepts the names of HOST and ALLOWED_HOSTS', async () => {
  const test = await openTestApi({
    config: { host: 'gpu-box', allowedHosts: ['Images.example', 'other.example:8080'] },
  });
  for (const host of ['gpu-box:8080', 'images.example', 'images.example.', 'other.example:8080'])
    expect([host, await statusOf(test, host)]).toEqual([host, 200]);
  expect(await statusOf(test, 'evil.example')).toBe(421);
  expect(await statusOf(await openTestApi({ config: { allowedHosts: ['*'] } }), 'evil.example')).toBe(200);
});

it('accepts every host on a server with keys: pages of other sites have none', async () => {
  const admin = new Map([[hashKey('root'), { ...alice, isAdmin: true }]]);
  expect(await statusOf(await openTestApi({ apiKeys: admin }), 'evil.example')).toBe(421);
  const test = await openTestApi({ apiKeys: new Map([[hashKey('secret'), alice]]) });
  expect(await statusOf(test, 'images.example', '/health')).toBe(200);
  expect(await statusOf(test, 'images.example')).toBe(401);
});
