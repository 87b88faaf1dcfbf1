/** Paths and hosts of URLs in answers behind proxies. */
import { openTestStore } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { createTestApi, openTestApi, type TestApiOptions } from '../testing/test-api.ts';

/** Returns the URLs in answers to a client behind a proxy with this address and these headers. */
async function urlsFor(
  headers: Readonly<Record<string, string>>,
  { address = '127.0.0.1', ...options }: TestApiOptions & { address?: string } = {},
) {
  const { api } = await openTestApi(options);
  const call = { outgoing: { req: { socket: { remoteAddress: address } } } };
  const ask = (path: string, body?: object) => {
    const sent = {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    };
    return api.request(path, body === undefined ? { headers } : sent, call);
  };
  const accepted = await ask('/v1/predict', { prompt: 'a fox' });
  const { urls } = (await accepted.json()) as { urls: { self: string } };
  const fal = await ask('/fal/queue/darkroom/tiny', { prompt: 'a fox' });
  const { response_url: response } = (await fal.json()) as { response_url: string };
  const root = await ask('/');
  return {
    self: urls.self.replace(/[^/]+$/, 'ID'),
    location: accepted.headers.get('location')?.replace(/[^/]+$/, 'ID'),
    fal: response.replace(/[^/]+$/, 'ID'),
    page: root.headers.get('location'),
  };
}

const plain = {
  self: '/v1/predict/ID',
  location: '/v1/predict/ID',
  fal: 'http://localhost/fal/queue/darkroom/tiny/requests/ID',
  page: 'client.html',
};
const below = (prefix: string, origin = 'http://localhost') => ({
  self: `${prefix}/v1/predict/ID`,
  location: `${prefix}/v1/predict/ID`,
  fal: `${origin}${prefix}/fal/queue/darkroom/tiny/requests/ID`,
  page: prefix === '' ? 'client.html' : `${prefix}/client.html`,
});
const forwarded = (prefix: string) => ({ 'x-forwarded-prefix': prefix });

describe('X-Forwarded-Prefix', () => {
  it.each([
    ['/darkroom', '/darkroom'],
    ['/darkroom/', '/darkroom'],
    ['/outer, /inner', '/outer/inner'],
    ['/a/b-c/d.e', '/a/b-c/d.e'],
  ])('%j of a trusted proxy prefixes every path', async (header, prefix) => {
    expect(await urlsFor(forwarded(header))).toEqual(below(prefix));
    expect(await urlsFor(forwarded(header), { address: '::ffff:127.0.0.1' })).toEqual(below(prefix));
  });

  it.each([
    '//evil.example',
    '/..',
    '/a/../b',
    'https://evil.example',
    '/a b',
    '/"',
    '/a?b',
    '',
    `/${'a'.repeat(300)}`,
  ])('is ignored if it is not a path: %j', async (header) => {
    const { page, ...rest } = await urlsFor(forwarded(header));
    expect(rest).toEqual({ self: plain.self, location: plain.location, fal: plain.fal });
    expect(['client.html', '/client.html']).toContain(page);
  });

  it('is ignored from other addresses, and used from those in TRUSTED_PROXIES', async () => {
    expect(await urlsFor(forwarded('/x'), { address: '10.0.0.7' })).toEqual(plain);
    const config = { trustedProxies: ['10.0.0.0/8', 'fd00::/8'] };
    for (const address of ['10.0.0.7', 'fd00::1', '::ffff:10.1.1.1'])
      expect(await urlsFor(forwarded('/x'), { address, config })).toEqual(below('/x'));
    expect(await urlsFor(forwarded('/x'), { address: '127.0.0.1', config })).toEqual(plain);
  });
});

describe('PUBLIC_URL', () => {
  it.each(['https://example.com/darkroom', 'https://example.com:8443/a/b', 'https://example.com'])(
    'prefixes all URLs, regardless of headers: %s',
    async (publicUrl) => {
      const { origin, pathname } = new URL(publicUrl);
      const headers = { ...forwarded('/other'), 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' };
      expect(await urlsFor(headers, { config: { publicUrl } })).toEqual(below(pathname.replace(/^\/$/, ''), origin));
    },
  );

  it('allows its host without an entry in ALLOWED_HOSTS, and its origin to write without keys', async () => {
    const { api } = createTestApi({ store: openTestStore(), config: { publicUrl: 'https://example.com/darkroom' } });
    const write = (origin: string) =>
      api.request('http://example.com/v1/predict', { method: 'POST', headers: { origin, host: 'example.com' } });
    expect((await api.request('http://example.com/v1/models')).status).toBe(200);
    expect((await api.request('http://example.org/v1/models')).status).toBe(421);
    expect((await write('https://example.org')).status).toBe(403);
    expect((await write('https://example.com')).status).not.toBe(403);
  });
});
