/** Admin routes of API keys, over HTTP and on several replicas. */
import { createLogger } from '@darkroom/service';
import { addKey, connectStore } from '@darkroom/store';
import { freePorts } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { StoredKeys } from '../auth/stored-keys.ts';
import type { ApiKey } from '../http/api-env.ts';
import { errorSchema } from '../http/error-response.ts';
import { listen } from '../testing/listen.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';

const unlimited = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
const shownUnlimited = { weight: 1, requests_per_minute: null, open_requests: null };

/** Keys of the settings and of the file: `root` of olga, an admin, `key-of-ann` and the hash of `key-of-fay`. */
function configuredKeys(): Map<string, ApiKey> {
  return new Map([
    [hashKey('root'), { name: 'olga', ...unlimited, isAdmin: true }],
    [hashKey('key-of-ann'), { name: 'ann', ...unlimited }],
    [hashKey('a-long-key-of-fay'), { name: 'fay', ...unlimited, weight: 2, openRequests: 5, isHashed: true }],
  ]);
}

interface Replica extends TestApi {
  storedKeys: StoredKeys;
}

function replicaOptions(store: TestApi['store'], apiKeys = configuredKeys()) {
  const log = createLogger({ app: 'api', stream: { write: () => {} } });
  return { apiKeys, storedKeys: new StoredKeys({ store, keys: apiKeys, log }) };
}

async function openReplicas(options: TestApiOptions = {}): Promise<[Replica, Replica]> {
  const test = await openTestApi({ apiKeys: configuredKeys(), ...options });
  const open = (): Replica => {
    const { storedKeys, ...deps } = replicaOptions(test.store, options.apiKeys ?? configuredKeys());
    return { ...test.replica({ ...deps, storedKeys }), storedKeys };
  };
  return [open(), open()];
}

async function ask(
  { api }: TestApi,
  [method, path]: readonly ['GET' | 'POST' | 'DELETE', string],
  { key = 'root', body }: { key?: string; body?: unknown } = {},
): Promise<[status: number, body: Record<string, unknown>]> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const response = await api.request(path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return [response.status, (await response.json()) as Record<string, unknown>];
}

async function add(test: TestApi, body: object): Promise<{ id: string; key: string }> {
  const [status, answer] = await ask(test, ['POST', '/admin/keys'], { body });
  expect(status).toBe(201);
  return answer as { id: string; key: string };
}

async function refusalOf(test: TestApi, body: unknown): Promise<[status: number, code: string, message: string]> {
  const [status, answer] = await ask(test, ['POST', '/admin/keys'], { body });
  const { code, message } = errorSchema.parse(answer).error;
  return [status, code, message];
}

async function statusOf(test: TestApi, key: string): Promise<number> {
  return (await ask(test, ['GET', '/v1/models'], { key }))[0];
}

it('adds a key that all replicas accept with its limits, until it is revoked', async () => {
  const [test, other] = await openReplicas();
  const { id, key } = await add(test, { name: 'carol', open_requests: 1 });
  expect(key).toMatch(/^dk-[\w-]{43}$/);
  expect([await statusOf(test, key), await statusOf(other, key)]).toEqual([200, 401]);
  await other.storedKeys.runOnce();
  const submit = (to: TestApi) => ask(to, ['POST', '/v1/predict'], { key, body: { prompt: 'a fox' } });
  const [[accepted, { request_id: request }], [refused]] = [await submit(other), await submit(test)];
  expect([accepted, refused]).toEqual([202, 429]);
  expect(await ask(test, ['DELETE', `/admin/keys/${id}`])).toEqual([200, { id, status: 'revoked' }]);
  expect([await statusOf(test, key), await statusOf(other, key)]).toEqual([401, 200]);
  await other.storedKeys.runOnce();
  expect([await statusOf(other, key), await statusOf(other, 'key-of-ann')]).toEqual([401, 200]);
  // Its request continues.
  expect(await test.store.redis.zcard(test.store.keysOf('tiny').waiting)).toBe(1);
  const again = await add(test, { name: 'carol' });
  expect((await ask(test, ['GET', `/v1/predict/${String(request)}`], again))[0]).toBe(202);
  expect((await ask(test, ['DELETE', `/admin/keys/${id}`]))[0]).toBe(404);
});

it('stores only the hash of a key, and logs who added and revoked it', async () => {
  const [test] = await openReplicas();
  const { id, key } = await add(test, { name: 'carol' });
  const stored = await test.store.redis.hgetall(`${test.store.prefix}:api-keys`);
  expect(JSON.parse(stored[id]!)).toMatchObject({ name: 'carol', sha256: hashKey(key) });
  await ask(test, ['DELETE', `/admin/keys/${id}`]);
  expect(Object.keys(await test.store.redis.hgetall(`${test.store.prefix}:api-keys`))).toEqual(['version']);
  const actions = test.lines.map((line) => JSON.parse(line) as object).filter((line) => 'key_id' in line);
  expect(actions).toMatchObject([
    { admin: 'olga', action: 'add key', key_id: id, owner: 'carol', outcome: 'added' },
    { admin: 'olga', action: 'revoke key', key_id: id, outcome: 'revoked' },
  ]);
  expect([JSON.stringify(stored), ...test.lines].join('')).not.toContain(key);
});

it('lists the keys of the settings, of the file and of Redis without the keys', async () => {
  const [test] = await openReplicas();
  const { id, key } = await add(test, { name: 'carol', weight: 0.5, requests_per_minute: 60 });
  const [, list] = await ask(test, ['GET', '/admin/keys']);
  const configured = { id: null, created_at: null };
  expect(list).toEqual({
    object: 'list',
    are_required: true,
    data: [
      { name: 'olga', ...shownUnlimited, source: 'ADMIN_KEYS', ...configured },
      { name: 'ann', ...shownUnlimited, source: 'API_KEYS', ...configured },
      { name: 'fay', ...shownUnlimited, weight: 2, open_requests: 5, source: 'API_KEYS_FILE', ...configured },
      {
        name: 'carol',
        weight: 0.5,
        requests_per_minute: 60,
        open_requests: null,
        source: 'redis',
        id,
        created_at: expect.stringMatching(/^\d{4}-/) as string,
      },
    ],
  });
  expect(JSON.stringify(list)).not.toContain(key);
});

it.each([
  [{}, 'name is missing, expected a text of 1 to 64 letters, digits, ".", "_" and "-"'],
  [{ name: 'a b' }, 'name is "a b", expected a text of 1 to 64 letters'],
  [{ name: 'a', weight: 0 }, 'weight is 0, expected a number from 0.001 to 1000'],
  [{ name: 'a', requests_per_minute: 1.5 }, 'requests_per_minute is 1.5, expected a whole number from 1 to 1000000'],
  [{ name: 'a', open_requests: '5' }, 'open_requests is "5", expected a whole number from 1 to 1000000'],
  [{ name: 'a', weigth: 2 }, 'weigth is not a field, did you mean weight?'],
  [[], 'the body is [], expected a JSON object'],
])('rejects %j and names the field, the value and what was expected', async (body, expected) => {
  const [test] = await openReplicas();
  expect(await refusalOf(test, body)).toEqual([400, expect.any(String), expect.stringContaining(expected)]);
});

it('rejects names of the settings and of the file, and other limits for a name that has keys', async () => {
  const [test] = await openReplicas();
  for (const name of ['olga', 'ann', 'fay'])
    expect((await refusalOf(test, { name })).slice(0, 2)).toEqual([409, 'name_in_use']);
  const keys = [await add(test, { name: 'carol', weight: 2 }), await add(test, { name: 'carol', weight: 2 })];
  expect(await Promise.all(keys.map(({ key }) => statusOf(test, key)))).toEqual([200, 200]);
  const [status, code, message] = await refusalOf(test, { name: 'carol' });
  expect([status, code]).toEqual([409, 'other_limits']);
  expect(message).toContain('{"weight":2,"requests_per_minute":null,"open_requests":null}');
});

it('stores at most 1,000 keys', async () => {
  const [test] = await openReplicas();
  const fields = { sha256: '', weight: 1, requestsPerMinute: null, openRequests: null };
  await Promise.all(
    Array.from({ length: 1000 }, (_, index) => addKey(test.store, { name: `n${index}`, ...fields }, 1000)),
  );
  expect(await refusalOf(test, { name: 'carol' })).toEqual([
    409,
    'too_many_keys',
    '1000 keys are stored, expected fewer: revoke one first.',
  ]);
});

it('adds no key on a server that needs none, which stays open', async () => {
  const apiKeys = new Map([...configuredKeys()].slice(0, 1));
  const [test] = await openReplicas({ apiKeys });
  expect((await refusalOf(test, { name: 'carol' })).slice(0, 2)).toEqual([409, 'keys_not_required']);
  expect(await ask(test, ['GET', '/admin/keys'])).toMatchObject([200, { are_required: false }]);
  // Another replica with API_KEYS may have added one.
  const sha256 = hashKey('other');
  await addKey(test.store, { name: 'bob', sha256, weight: 1, requestsPerMinute: null, openRequests: null }, 9);
  await test.storedKeys.runOnce();
  expect((await test.api.request('/v1/models')).status).toBe(200);
  expect(apiKeys.size).toBe(1);
});

it('ends the open streams of a revoked key on all replicas, and no others', async () => {
  const [test, other] = await openReplicas();
  const [ann, bob] = [await add(test, { name: 'carol' }), await add(test, { name: 'carol' })];
  await other.storedKeys.runOnce();
  const { url } = await listen(other);
  const open = async ({ key }: { key: string }) => {
    const init = { headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' } };
    const submitted = await fetch(`${url}/v1/predict`, { ...init, method: 'POST', body: '{"prompt":"a fox"}' });
    const { request_id: id } = (await submitted.json()) as { request_id: string };
    const reader = readFrames(await fetch(`${url}/v1/predict/${id}/events`, init));
    expect((await reader.next())?.event).toBe('queued');
    return reader;
  };
  const [revoked, kept] = [await open(ann), await open(bob)];
  await ask(test, ['DELETE', `/admin/keys/${ann.id}`]);
  await other.storedKeys.runOnce();
  await expect(revoked.next()).rejects.toThrow('terminated');
  await expect.poll(() => other.hub.size).toBe(1);
  await kept.cancel();
});

it('accepts the keys of the settings while Redis is unavailable', async () => {
  const [port = 0] = await freePorts(1);
  const store = connectStore({ url: `redis://127.0.0.1:${port}` });
  onTestFinished(() => store.close());
  const test = await openTestApi({ apiKeys: configuredKeys() });
  const apiKeys = configuredKeys();
  const log = createLogger({ app: 'api', stream: { write: () => {} } });
  const storedKeys = new StoredKeys({ store, keys: apiKeys, log, waitMs: 10 });
  await storedKeys.runOnce();
  const replica = test.replica({ apiKeys, storedKeys });
  expect([await statusOf(replica, 'key-of-ann'), await statusOf(replica, 'key-of-bob')]).toEqual([200, 401]);
});
