/** API keys, fair shares, ETA estimates, waiting and idempotency in a running system with two APIs. */
import { beforeAll, afterAll, expect, it } from 'vitest';
import { postJson } from '../e2e/client.ts';
import { type Part, startSystem, stopSystem, type System } from '../e2e/system.ts';

let system: System;
let second: Part;

beforeAll(async () => {
  system = await startSystem({
    environment: { API_KEYS: 'alice:first-key-of-alice,bob:second-key-of-bob', BATCH_MAX_SIZE: '2' },
  });
  second = await system.start('api');
});
afterAll(() => stopSystem(system));

interface View {
  request_id: string;
  status: string;
  queue_position: number | null;
  eta_seconds?: { min: number; max: number };
  ended_at: string;
}

async function send(
  key: string,
  body: object,
  { url = system.url, headers = {} }: { url?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; view: View }> {
  const all = { authorization: `Bearer ${key}`, ...headers };
  const response = await postJson(`${url}/v1/predict`, { prompt: 'a red apple on a white background', ...body }, all);
  return { status: response.status, view: (await response.json()) as View };
}

async function get(key: string, id: string, query = '', url = system.url): Promise<{ status: number; view: View }> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/v1/predict/${id}${query}`, { headers });
  return { status: response.status, view: (await response.json()) as View };
}

it('returns the image for Prefer: wait, and hides the request from other API keys', async () => {
  const { status, view } = await send(
    'first-key-of-alice',
    { num_inference_steps: 4 },
    { headers: { prefer: 'wait=60' } },
  );
  expect([status, view.status]).toEqual([200, 'succeeded']);
  expect((await get('second-key-of-bob', view.request_id)).status).toBe(404);
  expect((await get('third', view.request_id)).status).toBe(401);
});

it('shares capacity fairly between API keys, and orders eta_seconds by queue position', async () => {
  const many = await Promise.all(
    Array.from({ length: 30 }, () => send('first-key-of-alice', { num_inference_steps: 60, preview: 'off' })),
  );
  const one = await send('second-key-of-bob', { num_inference_steps: 20, preview: 'off' }, { url: second.url });
  // Requests that ran or were leased before it may come first.
  expect(one.view.queue_position).toBeLessThanOrEqual(4);
  const last = many.map(({ view }) => view).toSorted((a, b) => b.queue_position! - a.queue_position!)[0]!;
  // The worker publishes its throughput with its next heartbeat.
  await expect
    .poll(async () => (await get('first-key-of-alice', last.request_id)).view.eta_seconds?.min ?? 0)
    .toBeGreaterThan(0);
  const [soon, late] = await Promise.all([
    get('second-key-of-bob', one.view.request_id),
    get('first-key-of-alice', last.request_id),
  ]);
  expect(late.view.eta_seconds!.min).toBeGreaterThan(soon.view.eta_seconds?.min ?? 0);
  const ended = await get('second-key-of-bob', one.view.request_id, '?wait=60', second.url);
  expect(ended.view.status).toBe('succeeded');
  const stillOpen = await Promise.all(many.map(({ view }) => get('first-key-of-alice', view.request_id)));
  expect(stillOpen.filter(({ status }) => status === 202).length).toBeGreaterThan(15);
  await Promise.all(
    many.map(({ view }) =>
      fetch(`${system.url}/v1/predict/${view.request_id}`, {
        method: 'DELETE',
        headers: { authorization: 'Bearer first' },
      }),
    ),
  );
});

it('creates one request for 100 submits with the same Idempotency-Key over two APIs', async () => {
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_value, index) =>
      send(
        'first-key-of-alice',
        {},
        { url: index % 2 === 0 ? system.url : second.url, headers: { 'idempotency-key': 'apple-1' } },
      ),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  expect(new Set(answers.map(({ view }) => view.request_id)).size).toBe(1);
});

it('answers a waiting poll with 202 when its API stops', async () => {
  const third = await system.start('api');
  const { view } = await send('first-key-of-alice', { num_inference_steps: 200, n: 4 });
  const waiting = get('first-key-of-alice', view.request_id, '?wait=60', third.url);
  await expect.poll(() => subscriptions()).toBeGreaterThan(0);
  await third.stop();
  expect((await waiting).status).toBe(202);
});

async function subscriptions(): Promise<number> {
  const { redis } = system.store;
  return ((await redis.call('pubsub', 'channels', `${system.prefix}:*:events:*`)) as string[]).length;
}
