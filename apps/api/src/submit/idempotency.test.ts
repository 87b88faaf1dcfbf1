/** The same Idempotency-Key and body return the same request, on any replica. */
import { claimIdempotencyKey, publishModel, settleIdempotencyKey } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { errorSchema } from '../http/error-response.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { card, openTestApi, type TestApi } from '../testing/test-api.ts';

interface Answer {
  status: number;
  request_id: string;
  state: string;
  isReplayed: boolean;
}

async function send(
  test: TestApi,
  key: string,
  body: object = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await test.api.request('/v1/predict', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key, ...headers },
    body: JSON.stringify({ prompt: 'a fox', ...body }),
  });
  const json = (await response.json()) as { request_id: string; status: string; error?: { code: string } };
  return {
    status: response.status,
    request_id: json.request_id,
    state: json.status ?? json.error?.code,
    isReplayed: response.headers.has('idempotent-replayed'),
  };
}

function requestsOf({ store }: TestApi): Promise<number> {
  return store.redis.zcard(store.keysOf('tiny').waiting);
}

it('finds its request on any replica, with the fields of the body in any order', async () => {
  const test = await openTestApi();
  const first = await send(test, 'k1', { n: 2, size: '64x64' });
  expect(first).toMatchObject({ status: 202, state: 'queued', isReplayed: false });
  expect(await send(test.replica(), 'k1', { size: '64x64', n: 2 })).toEqual({ ...first, isReplayed: true });
  expect(await requestsOf(test)).toBe(1);
});

it('stores one request for a hundred concurrent sends to two replicas', async () => {
  const test = await openTestApi({ drawSeed: () => Math.floor(Math.random() * 2 ** 32) });
  const replicas = [test, test.replica()];
  const answers = await Promise.all(Array.from({ length: 100 }, (_value, index) => send(replicas[index % 2]!, 'k1')));
  expect(new Set(answers.map(({ request_id }) => request_id)).size).toBe(1);
  expect(answers.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  expect(await requestsOf(test)).toBe(1);
});

it('rejects a different body with 409, also when both arrive at once', async () => {
  const test = await openTestApi();
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_value, index) => send(test, 'k1', { seed: index % 2 })),
  );
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(20);
  expect(answers.filter(({ state }) => state === 'idempotency_conflict')).toHaveLength(20);
  expect(await send(test, 'k1', { seed: 9 })).toMatchObject({ status: 409 });
  expect(await requestsOf(test)).toBe(1);
});

it('shows the progress of the stored request', async () => {
  const test = await openTestApi();
  await startWorker(test.store);
  const { request_id } = await send(test, 'k1');
  const running = await runNext(test.store);
  expect(await send(test, 'k1')).toMatchObject({ status: 202, request_id, state: 'running' });
  await running.output(0, Buffer.from('png'));
  await running.finish();
  expect(await send(test, 'k1')).toMatchObject({ status: 202, request_id, state: 'succeeded' });
});

it('stores a new request once the old one has expired', async () => {
  const test = await openTestApi({ resultTtlMs: 1 });
  const { request_id } = await send(test, 'k1');
  await test.api.request(`/v1/predict/${request_id}`, { method: 'DELETE' });
  await expect.poll(() => test.store.redis.exists(test.store.keysOf('tiny').request(request_id))).toBe(0);
  const again = await send(test, 'k1', { seed: 5 });
  expect(again).toMatchObject({ status: 202, isReplayed: false });
  expect(again.request_id).not.toBe(request_id);
});

it('frees the key for a different body after a rejection', async () => {
  const test = await openTestApi({ config: { queueMaxLength: 1 } });
  const other = await test.submit();
  expect(await send(test, 'k1')).toMatchObject({ status: 503, state: 'overloaded' });
  await test.api.request(`/v1/predict/${other}`, { method: 'DELETE' });
  await expect.poll(async () => (await send(test, 'k1', { seed: 5 })).status).toBe(202);
  expect(await requestsOf(test)).toBe(1);
});

it('returns the same request after the default model has changed', async () => {
  const test = await openTestApi();
  const first = await send(test, 'k1');
  await publishModel(test.store, { ...card, id: 'another' });
  const replica = test.replica();
  expect(await send(replica, 'k1')).toEqual({ ...first, isReplayed: true });
  expect(await send(replica, 'k1', { seed: 5 })).toMatchObject({ status: 409 });
  expect(await test.store.redis.zcard(test.store.keysOf('another').waiting)).toBe(0);
  expect(await send(replica, 'k2')).toMatchObject({ status: 202, isReplayed: false });
  expect(await test.store.redis.zcard(test.store.keysOf('another').waiting)).toBe(1);
});

it('keeps its model if the default changed since a rejected send', async () => {
  const test = await openTestApi({ config: { queueMaxLength: 1 } });
  const other = await test.submit();
  expect(await send(test, 'k1')).toMatchObject({ status: 503, state: 'overloaded' });
  await test.api.request(`/v1/predict/${other}`, { method: 'DELETE' });
  await publishModel(test.store, { ...card, id: 'another' });
  const { status, request_id } = await send(test.replica(), 'k1');
  expect(status).toBe(202);
  expect((await test.api.request(`/v1/predict/${request_id}`)).status).toBe(202);
});

it('protects a key that is sent again after a rejection like a new key', async () => {
  const test = await openTestApi();
  const key = { owner: '', key: 'k1' };
  const options = { fingerprint: 'a', newId: 'tiny-1', ttlMs: 600_000 };
  await claimIdempotencyKey(test.store, key, options);
  await settleIdempotencyKey(test.store, key, { id: 'tiny-1', ttlMs: 600_000 }, 'refused');
  // The second send is in progress when a third arrives with a different body; its process dies before it settles.
  expect(await claimIdempotencyKey(test.store, key, { ...options, newId: 'tiny-2' })).toMatchObject({ id: 'tiny-1' });
  expect(await claimIdempotencyKey(test.store, key, { ...options, fingerprint: 'b', newId: 'tiny-3' })).toMatchObject({
    status: 'conflict',
  });
  const [record] = (await allKeys(test.store)).filter((name) => name.includes(':idempotency:'));
  expect(await test.store.redis.pttl(record!)).toBeGreaterThan(60_000);
});

it('a rejected send does not free a key under which another send was stored', async () => {
  const test = await openTestApi();
  const key = { owner: '', key: 'k1' };
  const stored = await send(test, 'k1');
  const settled = { id: stored.request_id, ttlMs: 600_000 };
  await settleIdempotencyKey(test.store, key, settled, 'stored');
  await settleIdempotencyKey(test.store, key, settled, 'refused');
  expect(await send(test, 'k1', { seed: 5 })).toMatchObject({ status: 409 });
});

it('stores no key for an invalid body', async () => {
  const test = await openTestApi();
  const before = await allKeys(test.store);
  expect(await send(test, 'k1', { n: 99 })).toMatchObject({ status: 400 });
  expect(await allKeys(test.store)).toEqual(before);
  expect(await send(test, 'k1')).toMatchObject({ status: 202 });
});

it('is scoped to its owner', async () => {
  const key = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
  const names = ['alice', 'bob'];
  const apiKeys = new Map(names.map((name) => [hashKey(name), { name, ...key }]));
  const test = await openTestApi({ apiKeys });
  const [alice, bob] = await Promise.all(
    names.map((name) => send(test, 'k1', {}, { Authorization: `Bearer ${name}` })),
  );
  expect([alice!.status, bob!.status]).toEqual([202, 202]);
  expect(alice!.request_id).not.toBe(bob!.request_id);
});

it('completes a submit whose process died between its two round trips', async () => {
  const test = await openTestApi();
  const { request_id } = await send(test, 'k1');
  const [record] = (await allKeys(test.store)).filter((name) => name.includes(':idempotency:'));
  await expect.poll(() => test.store.redis.hget(record!, 'state')).toBe('stored');
  // The state after a crash between the two round trips of a submit: the key is claimed, and nothing is stored.
  for (const key of await allKeys(test.store))
    if (key.startsWith(test.store.keysOf('tiny').base)) await test.store.redis.del(key);
  await test.store.redis.hset(record!, 'state', 'claimed');
  expect(await send(test, 'k1')).toMatchObject({ status: 202, request_id, isReplayed: false });
  expect(await send(test, 'k1')).toMatchObject({ status: 202, request_id, isReplayed: true });
  expect(await requestsOf(test)).toBe(1);
});

describe('the key', () => {
  it.each(['', ' ', 'a key', 'x'.repeat(256), 'schlüssel'])(
    'rejects the invalid key %j with a message',
    async (key) => {
      const test = await openTestApi();
      const response = await test.api.request('/v1/predict', {
        method: 'POST',
        headers: [
          ['Content-Type', 'application/json'],
          ['Idempotency-Key', key],
        ],
        body: '{"prompt": "a fox"}',
      });
      expect(response.status).toBe(400);
      expect(errorSchema.parse(await response.json()).error.param).toBe('Idempotency-Key');
    },
  );
});
