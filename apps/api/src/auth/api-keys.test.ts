/** Who may use the API, how much of it, and whose requests are whose. */
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRequestId } from '@darkroom/core';
import { allKeys, openTestStore } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ApiKey, type ApiKeys, hashKey, loadApiKeys } from './api-keys.ts';
import { errorSchema } from '../http/error-response.ts';
import { createTestApi, openTestApi, type TestApi } from '../testing/test-api.ts';

const plain = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };

function keysOf(...keys: (Partial<ApiKey> & { name: string })[]): ApiKeys {
  return new Map(keys.map((key) => [hashKey(`key-of-${key.name}`), { ...plain, ...key }]));
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
  it('lets in who has one, by any of the schemes that clients use', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }) });
    for (const scheme of ['Bearer', 'bearer', 'Token', 'Key']) {
      const headers = { Authorization: `${scheme} key-of-alice` };
      expect((await test.api.request('/v1/models', { headers })).status).toBe(200);
    }
  });

  it('answers 401 to everybody else, on every route, without saying what came', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }) });
    const answers = await Promise.all(
      [undefined, 'Bearer key-of-alicia', 'key-of-alice', 'Basic key-of-alice', 'Bearer '].map(
        async (authorization) => {
          const headers = authorization === undefined ? {} : { Authorization: authorization };
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

  it('keeps what is the same for everybody open', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }) });
    for (const path of ['/health', '/docs', '/docs/swagger-ui.css', '/openapi.json'])
      expect([path, (await test.api.request(path)).status]).toEqual([path, 200]);
  });
});

describe('owners', () => {
  it('shows a request to its own key alone, and 404 to others, also when its time is over', async () => {
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

  it('tells ids whose time is over from ids that never were, and keeps nothing of either', async () => {
    const apiKeys = keysOf({ name: 'alice' }, { name: 'bob' });
    const test = await openTestApi({ apiKeys, resultTtlMs: 1 });
    // Counts of ended requests go by the minute.
    const kept = async (): Promise<string[]> => (await allKeys(test.store)).filter((key) => !key.includes(':minute:'));
    const keptAfter = async (requests: number): Promise<[ids: string[], keys: string[]]> => {
      const ids: string[] = [];
      for (let count = 0; count < requests; count++) ids.push(await idOf(await submitAs(test, 'alice')));
      for (const id of ids) await test.api.request(`/v1/predict/${id}`, { method: 'DELETE', ...as('alice') });
      const isOfThese = (key: string): boolean => key.includes(':bytes:') || ids.some((id) => key.includes(id));
      await expect.poll(async () => (await kept()).filter(isOfThese)).toEqual([]);
      return [ids, await kept()];
    };
    const [[id = ''], afterOne] = await keptAfter(1);
    const [, afterMore] = await keptAfter(20);
    expect(afterMore).toEqual(afterOne);
    // Another process, which has asked Redis for nothing yet.
    const elsewhere = createTestApi({ apiKeys, store: openTestStore({ prefix: test.store.prefix }) });
    const last = id.endsWith('0') ? '1' : '0';
    for (const { api } of [test, elsewhere])
      for (const [who, which, expected] of [
        ['alice', id, [410, 'request_gone']],
        ['bob', id, [404, 'request_not_found']],
        ['alice', id.slice(0, -1) + last, [404, 'request_not_found']],
        ['alice', createRequestId({ model: 'tiny', owner: 'alice', secret: '', nowMs: 1 }), [404, 'request_not_found']],
      ] as const)
        for (const path of ['', '/events', '/images/0'])
          expect([who, await codeOf(await api.request(`/v1/predict/${which}${path}`, as(who)))]).toEqual([
            who,
            expected,
          ]);
    expect(await kept()).toEqual(afterOne);
  });
});

describe('limits', () => {
  it('counts submissions per minute over replicas, says what is left, and refuses what is too much', async () => {
    const apiKeys = keysOf({ name: 'alice', requestsPerMinute: 3 }, { name: 'bob', requestsPerMinute: 3 });
    const test = await openTestApi({ apiKeys });
    const replica = test.replica();
    const first = await submitAs(test, 'alice');
    expect(first.headers.get('ratelimit-limit')).toBe('3');
    expect(first.headers.get('ratelimit-remaining')).toBe('2');
    expect(first.headers.get('ratelimit-policy')).toBe('3;w=60');
    await submitAs(replica, 'alice');
    // What is refused for its content counts as well.
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

  it('finds what is stored again under its Idempotency-Key for nothing, and counts what is not', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice', requestsPerMinute: 2 }), resultTtlMs: 1 });
    const id = await idOf(await submitAs(test, 'alice', {}, 'k1'));
    for (let sent = 0; sent < 3; sent++) {
      const again = await submitAs(test.replica(), 'alice', {}, 'k1');
      expect([again.headers.get('idempotent-replayed'), await idOf(again)]).toEqual(['true', id]);
    }
    // One left: another body under the same key takes it, and is no way around the limit.
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

  it('refuses more open requests than a key may have at once, until one ends', async () => {
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

  it('shares the service by the weights of keys', async () => {
    const test = await openTestApi({ apiKeys: keysOf({ name: 'alice' }, { name: 'bob', weight: 3 }) });
    for (let count = 0; count < 8; count++) {
      await submitAs(test, 'alice');
      await submitAs(test, 'bob');
    }
    const id = await idOf(await submitAs(test, 'bob'));
    const view = (await (await test.api.request(`/v1/predict/${id}`, as('bob'))).json()) as { queue_position: number };
    // Eight of bob's before it, and a third as many of alice's.
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

  it('keeps pages of other origins out unless they are configured', async () => {
    const test = await openTestApi();
    const response = await test.api.request('/v1/models', { headers: { Origin: 'https://shop.example' } });
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('lets configured origins send what the client sends and read what it reads, before any key is asked for', async () => {
    const apiKeys = keysOf({ name: 'alice' });
    const test = await openTestApi({ apiKeys, config: { corsOrigins: ['https://shop.example'] } });
    const asked = await test.api.request('/v1/predict', { method: 'OPTIONS', headers: preflight });
    expect(asked.status).toBe(204);
    expect(asked.headers.get('access-control-allow-origin')).toBe('https://shop.example');
    expect(asked.headers.get('access-control-allow-headers')).toBe(sent);
    const refused = await test.api.request('/v1/models', { headers: { Origin: 'https://shop.example' } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, 'https://shop.example']);
    const readable = refused.headers.get('access-control-expose-headers')?.split(',');
    expect(readable).toEqual(expect.arrayContaining(['X-Request-Id', 'X-Should-Retry', 'Retry-After']));
    const other = await test.api.request('/v1/models', { headers: { Origin: 'https://evil.example' } });
    expect(other.headers.get('access-control-allow-origin')).toBeNull();
  });
});

describe('loading', () => {
  const sha256 = hashKey('secret');

  it('reads pairs and a file of hashes with limits and weights', async () => {
    const apiKeysFile = await keysFile({
      keys: [{ name: 'carol', sha256, weight: 2, requests_per_minute: 60, open_requests: 5 }],
    });
    const pairs = [
      { name: 'alice', key: 'old' },
      { name: 'alice', key: 'new:with:colons' },
    ];
    const adminKeys = [{ name: 'alice', key: 'root' }];
    const keys = loadApiKeys({ apiKeys: pairs, adminKeys, apiKeysFile });
    expect(keys.get(hashKey('root'))).toEqual({ name: 'alice', ...plain, isAdmin: true });
    expect(keys.get(hashKey('new:with:colons'))).toEqual({ name: 'alice', ...plain });
    expect(keys.get(sha256)).toEqual({
      name: 'carol',
      weight: 2,
      requestsPerMinute: 60,
      openRequests: 5,
      isAdmin: false,
    });
    expect(keys.size).toBe(4);
  });

  it.each<[string, unknown, RegExp]>([
    ['a missing file', undefined, /cannot be read/],
    ['text', 'name: alice', /is not JSON/],
    ['a key in clear', { keys: [{ name: 'alice', key: 'secret' }] }, /keys\.0/],
    ['a short hash', { keys: [{ name: 'alice', sha256: 'abc' }] }, /keys\.0\.sha256/],
    ['no weight at all', { keys: [{ name: 'alice', sha256, weight: 0 }] }, /keys\.0\.weight/],
    ['no keys', { keys: [] }, /keys: there is none/],
    [
      'a key twice',
      {
        keys: [
          { name: 'a', sha256 },
          { name: 'b', sha256 },
        ],
      },
      /expected each key once/,
    ],
    [
      'two limits for a name',
      {
        keys: [
          { name: 'alice', sha256, open_requests: 1 },
          { name: 'alice', sha256: hashKey('x') },
        ],
      },
      /other limits/,
    ],
  ])('refuses %s in words, and shows no key', async (_name, content, message) => {
    const apiKeysFile = content === undefined ? '/nowhere/keys.json' : await keysFile(content);
    expect(() => loadApiKeys({ apiKeys: undefined, adminKeys: undefined, apiKeysFile })).toThrow(message);
  });

  it.each(['apiKeys', 'adminKeys'] as const)(
    'refuses a name of %s in the file too, whatever its limits',
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
