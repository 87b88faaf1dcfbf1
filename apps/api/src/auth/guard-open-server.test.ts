import { allKeys } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';
import { hashKey } from './api-keys.ts';

const alice = { name: 'alice', weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
const base = 'http://127.0.0.1:8080';
const evil = 'https://evil.example';
const crossSiteHeaders: Record<string, string>[] = [
  { origin: evil },
  { origin: 'null' },
  { origin: 'http://127.0.0.1:3000' },
  { origin: 'http://localhost:8080' },
  { origin: `${base}.evil.example` },
  { origin: evil, 'sec-fetch-site': 'cross-site' },
  { origin: 'http://127.0.0.1:3000', 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
];

async function postForm(test: TestApi, headers: Record<string, string>, server = base): Promise<Response> {
  const body = new FormData();
  body.set('prompt', 'a fox');
  return test.api.request(`${server}/v1/predict`, { method: 'POST', headers, body });
}

async function statusOf(options: TestApiOptions, headers: Record<string, string>, server = base): Promise<number> {
  return (await postForm(await openTestApi(options), headers, server)).status;
}

it.each(crossSiteHeaders)('a server without keys rejects a form posted from another origin: %j', async (headers) => {
  const test = await openTestApi();
  const response = await postForm(test, headers);
  expect(response.status).toBe(403);
  expect(errorSchema.parse(await response.json()).error.code).toBe('cross_site_request');
  expect((await allKeys(test.store)).filter((key) => key.includes(':request:'))).toEqual([]);
});

it('rejects writes from other origins on every route and method', async () => {
  const test = await openTestApi();
  const writes = test.api.routes.filter(({ method }) => !['ALL', 'GET', 'HEAD', 'OPTIONS'].includes(method));
  expect(writes.length).toBeGreaterThan(15);
  for (const { method, path } of [...writes, { method: 'POST', path: '/fal/proxy' }, { method: 'PATCH', path: '/x' }]) {
    const response = await test.api.request(`${base}${path}`, { method, headers: { origin: evil } });
    expect([method, path, response.status]).toEqual([method, path, 403]);
  }
});

it('accepts writes from its own pages, non-browser clients, and pages behind a TLS-terminating proxy', async () => {
  expect(await statusOf({}, {})).toBe(202);
  expect(await statusOf({}, { origin: base })).toBe(202);
  expect(await statusOf({}, { origin: base, 'sec-fetch-site': 'same-origin' })).toBe(202);
  expect(await statusOf({}, { 'sec-fetch-site': 'none' })).toBe(202);
  const behindProxy = { config: { allowedHosts: ['darkroom.example'] } };
  expect(await statusOf(behindProxy, { origin: 'https://darkroom.example' }, 'http://darkroom.example')).toBe(202);
});

it('accepts writes from another origin only if CORS_ORIGINS lists it', async () => {
  const config = { corsOrigins: ['https://shop.example'] };
  const shop = { origin: 'https://shop.example', 'sec-fetch-site': 'cross-site' };
  expect(await statusOf({ config }, shop)).toBe(202);
  expect(await statusOf({ config }, { ...shop, origin: evil })).toBe(403);
  expect(await statusOf({ config: { corsOrigins: ['*'] } }, { ...shop, origin: evil })).toBe(202);
});

it('accepts GET and HEAD from other origins: CORS hides the response from the page', async () => {
  const test = await openTestApi();
  for (const method of ['GET', 'HEAD'])
    expect((await test.api.request(`${base}/v1/models`, { method, headers: { origin: evil } })).status).toBe(200);
});

it('accepts every origin if all clients need a key, but not if only admins do', async () => {
  const apiKeys = new Map([[hashKey('secret'), alice]]);
  expect(await statusOf({ apiKeys }, { origin: evil, authorization: 'Bearer secret' })).toBe(202);
  const admin = new Map([[hashKey('root'), { ...alice, isAdmin: true }]]);
  expect(await statusOf({ apiKeys: admin }, { origin: evil })).toBe(403);
});

async function hostStatusOf(test: TestApi, host: string, path = '/v1/webhooks/secret'): Promise<number> {
  return (await test.api.request(`http://${host}${path}`)).status;
}

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
    expect([host, await hostStatusOf(test, host)]).toEqual([host, 200]);
  for (const host of ['localhost.evil.example', '127.0.0.1.evil.example', 'api'])
    expect([host, await hostStatusOf(test, host)]).toEqual([host, 421]);
});

it('accepts the names of HOST and ALLOWED_HOSTS', async () => {
  const test = await openTestApi({
    config: { host: 'gpu-box', allowedHosts: ['Images.example', 'other.example:8080'] },
  });
  for (const host of ['gpu-box:8080', 'images.example', 'images.example.', 'other.example:8080'])
    expect([host, await hostStatusOf(test, host)]).toEqual([host, 200]);
  expect(await hostStatusOf(test, 'evil.example')).toBe(421);
  expect(await hostStatusOf(await openTestApi({ config: { allowedHosts: ['*'] } }), 'evil.example')).toBe(200);
});

it('accepts every host on a server with keys: pages of other sites have none', async () => {
  const admin = new Map([[hashKey('root'), { ...alice, isAdmin: true }]]);
  expect(await hostStatusOf(await openTestApi({ apiKeys: admin }), 'evil.example')).toBe(421);
  const test = await openTestApi({ apiKeys: new Map([[hashKey('secret'), alice]]) });
  expect(await hostStatusOf(test, 'images.example', '/health')).toBe(200);
  expect(await hostStatusOf(test, 'images.example')).toBe(401);
});
