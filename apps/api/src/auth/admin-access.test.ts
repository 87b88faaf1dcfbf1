/** Access to admin routes: by which key and from which address. */
import { describe, expect, it } from 'vitest';
import { type ApiKeys, hashKey } from './api-keys.ts';
import { errorSchema } from '../http/error-response.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import type { ApiKey } from '../http/api-env.ts';

const plain = { weight: 1, requestsPerMinute: undefined, openRequests: undefined };
const alice: [string, ApiKey] = [hashKey('key-of-alice'), { name: 'alice', ...plain, isAdmin: false }];
const olga: [string, ApiKey] = [hashKey('key-of-olga'), { name: 'olga', ...plain, isAdmin: true }];
const both: ApiKeys = new Map([alice, olga]);

const pause = '/admin/models/tiny/pause';
const list = '/admin/dead-requests';
const board = '/admin/queues';

function bearer(name: string): Record<string, string> {
  return { Authorization: `Bearer key-of-${name}` };
}

function basic(name: string): Record<string, string> {
  return { Authorization: `Basic ${Buffer.from(`admin:key-of-${name}`).toString('base64')}` };
}

type Answer = [status: number, code: string | undefined];

async function ask(test: TestApi, path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const method = path.endsWith('/pause') ? 'POST' : 'GET';
  const response = await test.api.request(path, { method, headers });
  if (response.status < 400) return [response.status, undefined];
  return [response.status, errorSchema.parse(await response.json()).error.code];
}

describe('without an admin key', () => {
  it.each<[string, ApiKeys, string, Answer]>([
    ['has keys', new Map([alice]), '127.0.0.1', [401, 'missing_api_key']],
    ['has none and can be reached by others', new Map(), '0.0.0.0', [404, 'route_not_found']],
  ])('returns 404 for admin routes on a server that %s', async (_what, apiKeys, host, anonymous) => {
    const test = await openTestApi({ apiKeys, config: { host } });
    for (const path of [pause, list, board, '/admin/queues/api/queues']) {
      expect([path, await ask(test, path)]).toEqual([path, anonymous]);
      expect([path, await ask(test, path, bearer('alice'))]).toEqual([path, [404, 'route_not_found']]);
    }
    expect(await ask(test, '/admin')).toEqual([404, 'route_not_found']);
    expect(await (await test.api.request('/admin')).text()).toContain('The admin routes are off');
    expect(await (await test.api.request('/openapi.json')).text()).not.toContain('/admin');
  });

  it('allows local clients of a server without keys that listens on loopback only', async () => {
    const test = await openTestApi({ config: { host: '127.0.0.1' } });
    for (const path of [pause, list, board]) expect([path, await ask(test, path)]).toEqual([path, [200, undefined]]);
    for (const host of ['127.0.0.1:8080', '[::1]:8080'])
      expect(await ask(test, `http://${host}${pause}`, { Origin: `http://${host}` })).toEqual([200, undefined]);
    const own = { 'Sec-Fetch-Site': 'same-origin', Origin: 'http://localhost' };
    expect(await ask(test, pause, own)).toEqual([200, undefined]);
  });

  it.each<[string, string, Record<string, string>]>([
    ['posts to this server', '', { Origin: 'https://evil.example' }],
    ['posts with Origin: null', '', { Origin: 'null' }],
    ['sends Sec-Fetch-Site: cross-site', '', { 'Sec-Fetch-Site': 'cross-site' }],
    ['is of another server on this machine', '', { 'Sec-Fetch-Site': 'same-site' }],
    ['has a DNS name that resolves to this server', 'http://evil.example', { Origin: 'http://evil.example' }],
  ])('returns 403 to a page that %s', async (_what, base, headers) => {
    const test = await openTestApi({ config: { host: '127.0.0.1', allowedHosts: ['*'], corsOrigins: ['*'] } });
    for (const path of [pause, list, board])
      expect([path, await ask(test, `${base}${path}`, headers)]).toEqual([path, [403, 'admin_only_locally']]);
    expect(await test.store.redis.exists(test.store.keysOf('tiny').paused)).toBe(0);
  });

  it.each(['Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'Via'])(
    'returns 403 to clients of a local proxy that sends %s',
    async (header) => {
      const test = await openTestApi({ config: { host: '127.0.0.1' } });
      for (const path of [pause, list, board])
        expect([path, await ask(test, path, { [header]: '203.0.113.7' })]).toEqual([path, [403, 'admin_only_locally']]);
    },
  );
});

describe('with an admin key', () => {
  it('allows only clients with the key', async () => {
    const test = await openTestApi({ apiKeys: both });
    for (const path of [pause, list]) {
      expect([path, await ask(test, path)]).toEqual([path, [401, 'missing_api_key']]);
      expect([path, await ask(test, path, bearer('nobody'))]).toEqual([path, [401, 'invalid_api_key']]);
      expect([path, await ask(test, path, bearer('alice'))]).toEqual([path, [403, 'not_an_admin']]);
    }
    expect(await test.store.redis.exists(test.store.keysOf('tiny').paused)).toBe(0);
    for (const path of [pause, list]) expect(await ask(test, path, bearer('olga'))).toEqual([200, undefined]);
    expect((await ask(test, '/admin'))[1]).not.toBe('missing_api_key');
  });

  it('is also a key for the API', async () => {
    const test = await openTestApi({ apiKeys: both });
    expect(await ask(test, '/status', bearer('olga'))).toEqual([200, undefined]);
    expect(await ask(test, '/status')).toEqual([401, 'missing_api_key']);
  });

  it('leaves an API without other keys open', async () => {
    const test = await openTestApi({ apiKeys: new Map([olga]), config: { host: '127.0.0.1' } });
    expect(await ask(test, '/v1/models')).toEqual([200, undefined]);
    expect(await ask(test, pause)).toEqual([401, 'missing_api_key']);
    const id = await test.submit();
    expect(await ask(test, `/v1/predict/${id}`, bearer('olga'))).toEqual([202, undefined]);
  });

  it('is accepted as a Basic password by the board only', async () => {
    const test = await openTestApi({ apiKeys: both });
    for (const headers of [{}, basic('alice'), basic('nobody'), { Authorization: 'Basic what' }]) {
      const response = await test.api.request(board, { headers });
      expect([response.status, response.headers.get('www-authenticate')]).toEqual([
        401,
        'Basic realm="Darkroom admin", charset="UTF-8"',
      ]);
    }
    expect(await ask(test, board, basic('olga'))).toEqual([200, undefined]);
    expect(await ask(test, board, bearer('olga'))).toEqual([200, undefined]);
    for (const path of [pause, list])
      expect([path, await ask(test, path, basic('olga'))]).toEqual([path, [401, 'invalid_api_key']]);
  });
});
