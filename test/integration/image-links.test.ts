/** Signed image links on a server with API keys: SDKs and webhook receivers fetch images without a key. */
import { createFalClient } from '@fal-ai/client';
import { createEventHub } from '@darkroom/store';
import { silentLogger } from '@darkroom/testing';
import OpenAI from 'openai';
import { expect, it, onTestFinished } from 'vitest';
import { anonymousKey, hashKey } from '../../apps/api/src/auth/api-keys.ts';
import { startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { openTestApi } from '../../apps/api/src/testing/test-api.ts';
import { startReceiver } from '../../apps/webhook-sender/src/testing/receiver.ts';
import { WebhookSender } from '../../apps/webhook-sender/src/webhook-sender.ts';
import { runSoon } from './run-soon.ts';

const prompt = 'a red apple on a white background';

async function openKeyed() {
  const apiKeys = new Map([[hashKey('a-key'), { ...anonymousKey, name: 'ann' }]]);
  const test = await openTestApi({ apiKeys, config: { webhookAllowPrivate: true } });
  await startWorker(test.store);
  const { url } = await listen(test);
  const draw = async (): Promise<void> => {
    const run = await runSoon(test.store);
    await run.output(0, Buffer.from('an image'));
    await run.finish();
  };
  return { store: test.store, url, draw };
}

it('OpenAI’s SDK returns a URL that opens without a key', async () => {
  const { url, draw } = await openKeyed();
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'a-key' });
  const [{ data }] = await Promise.all([client.images.generate({ prompt, response_format: 'url' }), draw()]);
  const link = data![0]!.url!;
  expect(link).toMatch(/&signature=/);
  expect(await (await fetch(link)).text()).toBe('an image');
  expect((await fetch(link.replace(/\?.*/, ''))).status).toBe(401);
});

it('fal’s client returns a URL that opens without a key', async () => {
  const { url, draw } = await openKeyed();
  const fal = createFalClient({ credentials: 'a-key', proxyUrl: { url: `${url}/fal/proxy`, when: 'always' } });
  const [{ data }] = await Promise.all([fal.subscribe('darkroom/tiny', { input: { prompt } }), draw()]);
  const link = (data as { images: { url: string }[] }).images[0]!.url;
  expect(link).toMatch(/^http:.*&signature=/);
  expect(await (await fetch(link)).text()).toBe('an image');
});

it('webhook: the receiver can open the image path without a key', async () => {
  const { store, url, draw } = await openKeyed();
  const wakeups = createEventHub(store);
  const sender = new WebhookSender({
    store,
    wakeups,
    log: silentLogger(),
    allowPrivate: true,
    stopGraceMs: 0,
  });
  onTestFinished(async () => {
    await sender.stop();
    wakeups.close();
  });
  await sender.start();
  const { url: webhook_url, received } = await startReceiver();
  const headers = { authorization: 'Bearer a-key', 'content-type': 'application/json' };
  await fetch(`${url}/v1/predict`, { method: 'POST', headers, body: JSON.stringify({ prompt, webhook_url }) });
  await draw();
  await expect.poll(() => received.length, { timeout: 10_000 }).toBe(1);
  const { data } = JSON.parse(received[0]!.body) as { data: { request_id: string; images: { url: string }[] } };
  const path = data.images[0]!.url;
  expect(await (await fetch(`${url}${path}`)).text()).toBe('an image');
  // The owner's poll returns the same links.
  const poll = await fetch(`${url}/v1/predict/${data.request_id}`, { headers });
  expect(((await poll.json()) as { images: unknown }).images).toEqual(data.images);
});
