/** API keys: authentication, owners and limits. */
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRequestId } from '@darkroom/core';
import { allKeys, openTestStore } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ApiKeys, hashKey, loadApiKeys } from './api-keys.ts';
import { errorSchema } from '../http/error-response.ts';
import { createTestApi, openTestApi, type TestApi } from '../testing/test-api.ts';
import type { ApiKey } from '../http/api-env.ts';

const unlimited = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };

function keysOf(...keys: (Partial<ApiKey> & { name: string })[]): ApiKeys {
  return new Map(keys.map((key) => [hashKey(`key-of-${key.name}`), { ...unlimited, ...key }]));
}

function as(name: string, headers: Record<string, string> = {}): { headers: Record<string, string> } {
  return { headers: { Authorization: `Bearer key-of-${name}`, 'Content-Type': 'application/json', ...headers } };
}

async function submitAs(test: TestApi, name: string, body: object = {}, idempotencyKey?: string): Promise<Response> {
  return test.api.request('/v1/predict', {
    method: 'POST',
    body: JSON.stringify({ prompt: 'a fox', ...body }),
    ...as(name, idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
  });
}

async function idOf(response: Response): Promise<string> {
  expect(response.status).toBe(202);
  return ((await response.json()) as { request_id: string }).request_id;
}

async function codeOf(response: Response): Promise<[number, string]> {
  return [response.status, errorSchema.parse(await response.json()).error.code];
}

async function keysFile(content: unknown): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-keys-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'keys.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

describe('keys', () => {
  it('accepts a key with the scheme Bearer, bearer, Token or Key', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }) });
    for (const scheme of ['Bearer', 'bearer', 'Token', 'Key']) {
      const headers = { Authorization: `${scheme} key-of-alice` };
      expect((await test.api.request('/v1/models', { headers })).status).toBe(200);
    }
  });

  it('returns 401 on every guarded route if the key is missing or invalid, and does not echo it', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }) });
    const answers = await Promise.all(
      [undefined, 'Bearer key-of-alicia', 'key-of-alice', 'Basic key-of-alice', 'Bearer '].map(
        async (authorization) => {
          const headers = new Headers(authorization === undefined ? [] : [['Authorization', authorization]]);
          const response = await test.api.request('/v1/models', { headers });
          expect(response.headers.get('www-authenticate')).toBe('Bearer');
          const text = await response.text();
          expect(text).not.toContain('alic');
          return [response.status, errorSchema.parse(JSON.parse(text)).error.code];
        },
      ),
    );
    expect(answers).toEqual([
      [401, 'missing_api_key'],
      [401, 'invalid_api_key'],
      [401, 'invalid_api_key'],
      [401, 'invalid_api_key'],
      [401, 'invalid_api_key'],
    ]);
    const guarded = test.api.routes.filter(
      ({ method, path }) => method !== 'ALL' && !/^\/(?:$|client|assets|docs|openapi|health)/.test(path),
    );
    expect(guarded.length).toBeGreaterThan(5);
    for (const { method, path } of guarded) {
      const response = await test.api.request(path.replaceAll(/:\w+/g, 'tiny-00000000000000000000000000'), { method });
      expect([path, response.status]).toEqual([path, 401]);
    }
    expect(test.lines.join('')).not.toContain('key-of');
  });

  it('requires no key for /health, the docs pages and /openapi.json', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }) });
    for (const path of ['/health', '/docs', '/docs/swagger-ui.css', '/openapi.json'])
      expect([path, (await test.api.request(path)).status]).toEqual([path, 200]);
  });
});

/** Returns a key of 15 characters (`short`, below the minimum) or 16 (`long`). */
function keyOf(name: 'short' | 'long'): string {
  return `${name}-key`.padEnd(name === 'short' ? 15 : 16, 'x');
}

describe('API_KEYS_FILE', () => {
  it('rejects a key of fewer than 16 characters even if the file has its hash', async () => {
    const keys = (['short', 'long'] as const).map((name) => ({ name, sha256: hashKey(keyOf(name)) }));
    const settings = { apiKeys: undefined, adminKeys: undefined, apiKeysFile: await keysFile({ keys }) };
    const test = await openTestApi({ apiKeys: loadApiKeys(settings) });
    const answers = (['short', 'long'] as const).map(async (name) => {
      const headers = { Authorization: `Bearer ${keyOf(name)}` };
      return (await test.api.request('/v1/models', { headers })).status;
    });
    expect(await Promise.all(answers)).toEqual([401, 200]);
  });
});

describe('owners', () => {
  it('returns a request only to its owner; others get 404, even after it has expired', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }, { name: 'bob' }), resultTtlMs: 1 });
    const id = await idOf(await submitAs(test, 'alice'));
    const paths = [`/v1/predict/${id}`, `/v1/predict/${id}/events`, `/v1/predict/${id}/images/0`];
    for (const path of paths)
      expect(await codeOf(await test.api.request(path, as('bob')))).toEqual([404, 'request_not_found']);
    const cancel = { method: 'DELETE' };
    expect(await codeOf(await test.api.request(paths[0]!, { ...cancel, ...as('bob') }))).toEqual([
      404,
      'request_not_found',
    ]);
    expect((await test.api.request(paths[0]!, as('alice'))).status).toBe(202);
    expect((await test.api.request(paths[0]!, { ...cancel, ...as('alice') })).status).toBe(200);
    await expect.poll(() => test.store.redis.exists(test.store.keysOf('tiny').request(id))).toBe(0);
    expect(await codeOf(await test.api.request(paths[0]!, as('bob')))).toEqual([404, 'request_not_found']);
    expect(await codeOf(await test.api.request(paths[0]!, as('alice')))).toEqual([410, 'request_gone']);
  });

  it('returns 410 for expired ids and 404 for unknown ids, without storing ids of expired requests', async () => {
    const apiKeys = keysOf({ name: 'alice' }, { name: 'bob' });
    const test = await openTestApi({ apiKeys, resultTtlMs: 1 });
    // Per-minute counters outlive the requests.
    const storedKeys = async (): Promise<string[]> =>
      (await allKeys(test.store)).filter((key) => !key.includes(':minute:'));
    const storedKeysAfter = async (requests: number): Promise<[ids: string[], keys: string[]]> => {
      const ids: string[] = [];
      for (let count = 0; count < requests; count++) ids.push(await idOf(await submitAs(test, 'alice')));
      for (const id of ids) await test.api.request(`/v1/predict/${id}`, { method: 'DELETE', ...as('alice') });
      const isOfThese = (key: string): boolean => key.includes(':bytes:') || ids.some((id) => key.includes(id));
      await expect.poll(async () => (await storedKeys()).filter(isOfThese)).toEqual([]);
      return [ids, await storedKeys()];
    };
    const [[id = ''], afterOne] = await storedKeysAfter(1);
    const [, afterMore] = await storedKeysAfter(20);
    expect(afterMore).toEqual(afterOne);
    // Another process, without cached state.
    const elsewhere = createTestApi({ apiKeys, store: openTestStore({ prefix: test.store.prefix }) });
    const last = id.endsWith('0') ? '1' : '0';
    for (const { api } of [test, elsewhere])
      for (const [name, which, expected] of [
        ['alice', id, [410, 'request_gone']],
        ['bob', id, [404, 'request_not_found']],
        ['alice', id.slice(0, -1) + last, [404, 'request_not_found']],
        ['alice', createRequestId({ model: 'tiny', owner: 'alice', secret: '', nowMs: 1 }), [404, 'request_not_found']],
      ] as const)
        for (const path of ['', '/events', '/images/0'])
          expect([name, await codeOf(await api.request(`/v1/predict/${which}${path}`, as(name)))]).toEqual([
            name,
            expected,
          ]);
    expect(await storedKeys()).toEqual(afterOne);
  });
});

describe('limits', () => {
  it('limits submissions per minute across all replicas and reports how many remain', async () => {
    const apiKeys = keysOf({ name: 'alice', requestsPerMinute: 3 }, { name: 'bob', requestsPerMinute: 3 });
    const test = await openTestApi({ apiKeys });
    const replica = test.replica();
    const first = await submitAs(test, 'alice');
    expect(first.headers.get('ratelimit-limit')).toBe('3');
    expect(first.headers.get('ratelimit-remaining')).toBe('2');
    expect(first.headers.get('ratelimit-policy')).toBe('3;w=60');
    await submitAs(replica, 'alice');
    // Invalid submissions count as well.
    expect((await submitAs(replica, 'alice', { n: 99 })).headers.get('ratelimit-remaining')).toBe('0');
    const refused = await submitAs(test, 'alice');
    const reset = Number(refused.headers.get('ratelimit-reset'));
    expect(reset).toBeGreaterThan(0);
    expect(reset).toBeLessThanOrEqual(60);
    expect(refused.headers.get('retry-after')).toBe(String(reset));
    expect(await codeOf(refused)).toEqual([429, 'rate_limit_exceeded']);
    expect((await test.api.request('/v1/models', as('alice'))).status).toBe(200);
    expect((await submitAs(test, 'bob')).status).toBe(202);
    expect(await test.store.redis.zcard(test.store.keysOf('tiny').waiting)).toBe(3);
  });

  it('does not count replays of an Idempotency-Key, but counts a different body under it', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice', requestsPerMinute: 2 }), resultTtlMs: 1 });
    const id = await idOf(await submitAs(test, 'alice', {}, 'k1'));
    for (let sent = 0; sent < 3; sent++) {
      const again = await submitAs(test.replica(), 'alice', {}, 'k1');
      expect([again.headers.get('idempotent-replayed'), await idOf(again)]).toEqual(['true', id]);
    }
    // One submission is left: a different body under the same Idempotency-Key uses it up.
    expect(await codeOf(await submitAs(test, 'alice', { seed: 5 }, 'k1'))).toEqual([409, 'idempotency_conflict']);
    const before = await allKeys(test.store);
    for (const key of ['k1', 'k2', undefined, ' '])
      expect(await codeOf(await submitAs(test, 'alice', { seed: 5 }, key))).toEqual([429, 'rate_limit_exceeded']);
    expect(await allKeys(test.store)).toEqual(before);
    expect(await idOf(await submitAs(test, 'alice', {}, 'k1'))).toBe(id);
    await test.api.request(`/v1/predict/${id}`, { method: 'DELETE', ...as('alice') });
    await expect.poll(() => test.store.redis.exists(test.store.keysOf('tiny').request(id))).toBe(0);
    expect(await codeOf(await submitAs(test, 'alice', {}, 'k1'))).toEqual([429, 'rate_limit_exceeded']);
  });

  it('rejects submissions of a key at its limit of open requests until one of them ends', async () => {
    const test = await openTestApi({
      apiKeys: keysOf({ name: 'alice', openRequests: 2, isAdmin: false }, { name: 'bob' }),
    });
    const id = await idOf(await submitAs(test, 'alice'));
    await idOf(await submitAs(test, 'alice'));
    const refused = await submitAs(test, 'alice');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await codeOf(refused)).toEqual([429, 'too_many_open_requests']);
    await idOf(await submitAs(test, 'bob'));
    await test.api.request(`/v1/predict/${id}`, { method: 'DELETE', ...as('alice') });
    await idOf(await submitAs(test, 'alice'));
  });

  it('orders the queue by the weights of the keys', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }, { name: 'bob', weight: 3 }) });
    for (let count = 0; count < 8; count++) {
      await submitAs(test, 'alice');
      await submitAs(test, 'bob');
    }
    const id = await idOf(await submitAs(test, 'bob'));
    const view = (await (await test.api.request(`/v1/predict/${id}`, as('bob'))).json()) as { queue_position: number };
    // Ahead are bob's eight requests and, by weight, about a third as many of alice's.
    expect(view.queue_position).toBeLessThanOrEqual(8 + 4);
  });
});

describe('CORS', () => {
  const sent = 'authorization,idempotency-key,last-event-id,x-stainless-lang';
  const preflight = {
    Origin: 'https://shop.example',
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Headers': sent,
  };

  it('sends no CORS headers to origins that are not configured', async () => {
    const test = await openTestApi();
    const response = await test.api.request('/v1/models', { headers: { Origin: 'https://shop.example' } });
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('answers preflights of configured origins, and exposes headers to them, before checking the key', async () => {
    const apiKeys = keysOf({ name: 'alice' });
    const test = await openTestApi({ apiKeys, config: { corsOrigins: ['https://shop.example'] } });
    const preflighted = await test.api.request('/v1/predict', { method: 'OPTIONS', headers: preflight });
    expect(preflighted.status).toBe(204);
    expect(preflighted.headers.get('access-control-allow-origin')).toBe('https://shop.example');
    expect(preflighted.headers.get('access-control-allow-headers')).toBe(sent);
    const refused = await test.api.request('/v1/models', { headers: { Origin: 'https://shop.example' } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, 'https://shop.example']);
    const readable = refused.headers.get('access-control-expose-headers')?.split(',');
    expect(readable).toEqual(expect.arrayContaining(['X-Request-Id', 'X-Should-Retry', 'Retry-After']));
    const other = await test.api.request('/v1/models', { headers: { Origin: 'https://evil.example' } });
    expect(other.headers.get('access-control-allow-origin')).toBeNull();
  });
});

describe('loadApiKeys', () => {
  const sha256 = hashKey('secret');

  it('loads API_KEYS, ADMIN_KEYS and a file of hashes with limits and weights', async () => {
    const apiKeysFile = await keysFile({
      keys: [{ name: 'carol', sha256, weight: 2, requests_per_minute: 60, open_requests: 5 }],
    });
    const pairs = [
      { name: 'alice', key: 'old' },
      { name: 'alice', key: 'new:with:colons' },
    ];
    const adminKeys = [{ name: 'alice', key: 'root' }];
    const keys = loadApiKeys({ apiKeys: pairs, adminKeys, apiKeysFile });
    expect(keys.get(hashKey('root'))).toEqual({ name: 'alice', ...unlimited, isAdmin: true });
    expect(keys.get(hashKey('new:with:colons'))).toEqual({ name: 'alice', ...unlimited });
    expect(keys.get(sha256)).toEqual({
      name: 'carol',
      weight: 2,
      requestsPerMinute: 60,
      openRequests: 5,
      isAdmin: false,
      isHashed: true,
      revocation: expect.any(AbortController) as AbortController,
    });
    expect(keys.size).toBe(4);
  });

  it.each<[string, unknown, RegExp]>([
    ['a missing file', undefined, /cannot be read/],
    ['a file that is not JSON', 'name: alice', /is not JSON/],
    ['a plaintext key', { keys: [{ name: 'alice', key: 'secret' }] }, /keys\.0/],
    ['a short hash', { keys: [{ name: 'alice', sha256: 'abc' }] }, /keys\.0\.sha256/],
    ['a weight of 0', { keys: [{ name: 'alice', sha256, weight: 0 }] }, /keys\.0\.weight/],
    ['an empty list of keys', { keys: [] }, /keys: expected at least one/],
    [
      'the same key twice',
      {
        keys: [
          { name: 'a', sha256 },
          { name: 'b', sha256 },
        ],
      },
      /expected each key once/,
    ],
    [
      'different limits for one name',
      {
        keys: [
          { name: 'alice', sha256, open_requests: 1 },
          { name: 'alice', sha256: hashKey('x') },
        ],
      },
      /other limits/,
    ],
  ])('rejects %s and names the problem', async (_name, content, message) => {
    const apiKeysFile = content === undefined ? '/nowhere/keys.json' : await keysFile(content);
    expect(() => loadApiKeys({ apiKeys: undefined, adminKeys: undefined, apiKeysFile })).toThrow(message);
  });

  it.each(['apiKeys', 'adminKeys'] as const)(
    'rejects a name that is in both %s and API_KEYS_FILE, whatever its limits',
    async (name) => {
      const apiKeysFile = await keysFile({ keys: [{ name: 'alice', sha256 }] });
      const given = {
        apiKeys: undefined,
        adminKeys: undefined,
        [name]: [{ name: 'alice', key: 'other' }],
        apiKeysFile,
      };
      expect(() => loadApiKeys(given)).toThrow(/API_KEYS_FILE .* has alice with other limits/);
    },
  );
});
