/** Webhooks with special settings, and with senders that are killed. */
import { expect, it, vi } from 'vitest';
import { ended, submit, postJson } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';
import { startReceiver, typesOf, untilAllDelivered } from '../e2e/webhook-receiver.ts';

const pollOptions = { timeout: 30_000, interval: 20 };
const quick = { prompt: 'a red apple on a white background', num_inference_steps: 4, seed: 11, preview: 'off' };
const environment = { WEBHOOK_ALLOW_PRIVATE: 'true' };
const everything = ['api', 'batch-former', 'janitor', 'worker', 'webhook-sender'] as const;

it('delivers one webhook per start and end, and progress at most once a second', async () => {
  const system = await openSystem({
    parts: [...everything, 'webhook-sender'],
    environment,
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
  const others = typesOf(receiver, succeeded).filter((type) => type !== 'request.progress');
  expect(others.toSorted()).toEqual(['request.started', 'request.succeeded']);
  const times = receiver.messages
    .filter(({ type, data }) => type === 'request.progress' && data.request_id === succeeded)
    .map(({ timestamp }) => Date.parse(timestamp))
    .toSorted((left, right) => left - right);
  expect(times.length).toBeGreaterThan(0);
  for (const [at, time] of times.slice(1).entries()) expect(time - times[at]!).toBeGreaterThanOrEqual(1000);
  const ends = (id: string) => typesOf(receiver, id).filter((type) => !/started|progress/.test(type));
  expect([ends(canceled), ends(expired)]).toEqual([['request.canceled'], ['request.expired']]);
  expect(new Set(receiver.messages.map(({ id }) => id)).size).toBe(receiver.messages.length);
});

it('delivers webhooks after a sender was killed during delivery, or did not run when a request ended', async () => {
  const system = await openSystem({
    parts: ['api', 'batch-former', 'janitor', 'worker'],
    environment,
  });
  const receiver = await startReceiver(system, (count) => (count === 1 ? undefined : 204));
  const first = await submit(system.url, { ...quick, webhook_url: receiver.url });
  expect(await ended(system.url, first)).toBe('succeeded');
  const sender = await system.start('webhook-sender');
  // The sender has sent the message and waits for the answer.
  await vi.waitFor(() => expect(receiver.messages).toHaveLength(1), pollOptions);
  await sender.kill();
  const second = await submit(system.url, { ...quick, webhook_url: receiver.url });
  expect(await ended(system.url, second)).toBe('succeeded');
  await system.start('webhook-sender');
  await vi.waitFor(() => expect(receiver.messages).toHaveLength(3), pollOptions);
  await untilAllDelivered(system);
  expect([typesOf(receiver, first).length, typesOf(receiver, second).length]).toEqual([2, 1]);
  const [original, ...later] = receiver.messages;
  expect(later.filter(({ id }) => id === original!.id)).toHaveLength(1);
});

it('refuses webhooks to private addresses at submit and again at delivery, unless allowed', async () => {
  const system = await openSystem({ parts: ['api', 'batch-former', 'janitor', 'worker'] });
  const receiver = await startReceiver(system);
  const response = await postJson(`${system.url}/v1/predict`, { ...quick, webhook_url: receiver.url });
  const { error } = (await response.json()) as { error: { param: string } };
  expect([response.status, error.param]).toEqual([400, 'webhook_url']);
  // An API with WEBHOOK_ALLOW_PRIVATE accepts the URL; the sender still refuses it.
  const trusting = await system.start('api', { WEBHOOK_ALLOW_PRIVATE: 'true' });
  await system.start('webhook-sender');
  await submit(trusting.url, { ...quick, webhook_url: receiver.url });
  await vi.waitFor(async () => {
    const deliveries = await fetch(`${system.url}/v1/webhooks/deliveries`);
    expect(await deliveries.json()).toMatchObject({ data: [{ last_error: 'the address is not public' }] });
  }, pollOptions);
  expect([receiver.messages.length, receiver.forged]).toEqual([0, 0]);
});
