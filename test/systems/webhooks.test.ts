/** Webhooks of systems that are set otherwise, and whose senders are killed. */
import { expect, it, vi } from 'vitest';
import { ended, submit } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';
import { startReceiver, typesOf, untilAllDelivered } from '../e2e/webhook-receiver.ts';

const patience = { timeout: 30_000, interval: 20 };
const quick = { prompt: 'a red apple on a white background', num_inference_steps: 4, seed: 11, preview: 'off' };
const environment = { WEBHOOK_ALLOW_PRIVATE: 'true' };
const everything = ['api', 'batch-former', 'janitor', 'worker', 'webhook-sender'] as const;

it('every end is told of once, the start as well, and progress once an interval', async () => {
  const system = await openSystem({
    parts: [...everything, 'webhook-sender'],
    environment: { ...environment, WEBHOOK_PROGRESS_INTERVAL_MS: '3600000' },
  });
  const receiver = await startReceiver(system);
  const webhook = { webhook_url: receiver.url, webhook_events: ['started', 'progress', 'completed'] };
  const succeeded = await submit(system.url, { ...quick, ...webhook });
  const canceled = await submit(system.url, { ...quick, num_inference_steps: 200, n: 4, ...webhook });
  const expired = await submit(system.url, { ...quick, num_inference_steps: 200, n: 10, timeout_s: 1, ...webhook });
  expect(await ended(system.url, succeeded)).toBe('succeeded');
  await fetch(`${system.url}/v1/predict/${canceled}`, { method: 'DELETE' });
  expect(await ended(system.url, canceled)).toBe('canceled');
  expect(await ended(system.url, expired)).toBe('expired');
  await untilAllDelivered(system);
  expect(typesOf(receiver, succeeded).toSorted()).toEqual(['request.progress', 'request.started', 'request.succeeded']);
  const ends = (id: string) => typesOf(receiver, id).filter((type) => !/started|progress/.test(type));
  expect([ends(canceled), ends(expired)]).toEqual([['request.canceled'], ['request.expired']]);
  expect(new Set(receiver.messages.map(({ id }) => id)).size).toBe(receiver.messages.length);
});

it('a sender killed in mid-delivery, and one that was away at the end: both messages arrive', async () => {
  const system = await openSystem({
    parts: ['api', 'batch-former', 'janitor', 'worker'],
    // The second sender waits this long for what the first had.
    environment: { ...environment, LOCK_MS: '3000' },
  });
  const receiver = await startReceiver(system, (count) => (count === 1 ? undefined : 204));
  const first = await submit(system.url, { ...quick, webhook_url: receiver.url });
  expect(await ended(system.url, first)).toBe('succeeded');
  const sender = await system.start('webhook-sender');
  // It has sent the message and waits for an answer.
  await vi.waitFor(() => expect(receiver.messages).toHaveLength(1), patience);
  await sender.kill();
  const second = await submit(system.url, { ...quick, webhook_url: receiver.url });
  expect(await ended(system.url, second)).toBe('succeeded');
  await system.start('webhook-sender');
  await vi.waitFor(() => expect(receiver.messages).toHaveLength(3), patience);
  await untilAllDelivered(system);
  expect([typesOf(receiver, first).length, typesOf(receiver, second).length]).toEqual([2, 1]);
  const [original, ...later] = receiver.messages;
  expect(later.filter(({ id }) => id === original!.id)).toHaveLength(1);
});

it('private addresses are refused unless they are allowed, at the door and again when sending', async () => {
  const system = await openSystem({ parts: ['api', 'batch-former', 'janitor', 'worker'] });
  const receiver = await startReceiver(system);
  const response = await fetch(`${system.url}/v1/predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...quick, webhook_url: receiver.url }),
  });
  const { error } = (await response.json()) as { error: { param: string } };
  expect([response.status, error.param]).toEqual([400, 'webhook_url']);
  // What an API let in that was configured otherwise.
  const trusting = await system.start('api', { WEBHOOK_ALLOW_PRIVATE: 'true' });
  await system.start('webhook-sender');
  await submit(trusting.url, { ...quick, webhook_url: receiver.url });
  await vi.waitFor(async () => {
    const deliveries = await fetch(`${system.url}/v1/webhooks/deliveries`);
    expect(await deliveries.json()).toMatchObject({ data: [{ last_error: 'the address is not public' }] });
  }, patience);
  expect([receiver.messages.length, receiver.forged]).toEqual([0, 0]);
});
