/** Keys, fair shares, estimates, waiting and idempotency against the running system, over two APIs. */
import { beforeAll, afterAll, expect, it } from 'vitest';
import { type Part, startSystem, stopSystem, type System } from '../e2e/system.ts';

let system: System;
let second: Part;

beforeAll(async () => {
  system = await startSystem({ environment: { API_KEYS: 'alice:first,bob:second', BATCH_MAX_SIZE: '2' } });
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
  const response = await fetch(`${url}/v1/predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify({ prompt: 'a red apple on a white background', ...body }),
  });
  return { status: response.status, view: (await response.json()) as View };
}

async function get(key: string, id: string, query = '', url = system.url): Promise<{ status: number; view: View }> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${url}/v1/predict/${id}${query}`, { headers });
  return { status: response.status, view: (await response.json()) as View };
}

it('a submit that waits comes back with the picture, and other keys know nothing of it', async () => {
  const { status, view } = await send('first', { num_inference_steps: 4 }, { headers: { prefer: 'wait=60' } });
  expect([status, view.status]).toEqual([200, 'succeeded']);
  expect((await get('second', view.request_id)).status).toBe(404);
  expect((await get('third', view.request_id)).status).toBe(401);
});

it('one key with a full queue does not make the one request of another wait, and estimates follow the order', async () => {
  const many = await Promise.all(
    Array.from({ length: 30 }, () => send('first', { num_inference_steps: 60, preview: 'off' })),
  );
  const one = await send('second', { num_inference_steps: 20, preview: 'off' }, { url: second.url });
  // Beside what was under way or chosen before it came.
  expect(one.view.queue_position).toBeLessThanOrEqual(4);
  const last = many.map(({ view }) => view).toSorted((a, b) => b.queue_position! - a.queue_position!)[0]!;
  // The worker tells its pace with its next heartbeat.
  await expect.poll(async () => (await get('first', last.request_id)).view.eta_seconds?.min ?? 0).toBeGreaterThan(0);
  const [soon, late] = await Promise.all([get('second', one.view.request_id), get('first', last.request_id)]);
  expect(late.view.eta_seconds!.min).toBeGreaterThan(soon.view.eta_seconds?.min ?? 0);
  const ended = await get('second', one.view.request_id, '?wait=60', second.url);
  expect(ended.view.status).toBe('succeeded');
  const stillOpen = await Promise.all(many.map(({ view }) => get('first', view.request_id)));
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

it('the same idempotency key is one request over two APIs', async () => {
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_value, index) =>
      send('first', {}, { url: index % 2 === 0 ? system.url : second.url, headers: { 'idempotency-key': 'apple-1' } }),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  expect(new Set(answers.map(({ view }) => view.request_id)).size).toBe(1);
});

it('a poll that waits at an API that stops gets its answer', async () => {
  const third = await system.start('api');
  const { view } = await send('first', { num_inference_steps: 200, n: 4 });
  const waiting = get('first', view.request_id, '?wait=60', third.url);
  await expect.poll(() => subscriptions()).toBeGreaterThan(0);
  await third.stop();
  expect((await waiting).status).toBe(202);
});

async function subscriptions(): Promise<number> {
  const { redis } = system.store;
  return ((await redis.call('pubsub', 'channels', `${system.prefix}:*:events:*`)) as string[]).length;
}
