import { allKeys } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';
import { hashKey } from './api-keys.ts';

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
  const key = { name: 'alice', weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
  const apiKeys = new Map([[hashKey('secret'), key]]);
  expect(await statusOf({ apiKeys }, { origin: evil, authorization: 'Bearer secret' })).toBe(202);
  const admin = new Map([[hashKey('root'), { ...key, isAdmin: true }]]);
  expect(await statusOf({ apiKeys: admin }, { origin: evil })).toBe(403);
});
