/** Webhooks of fal and Replicate requests: payloads in their shapes, verified as their receivers do. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fal } from '@fal-ai/client';
import Replicate, { type Prediction, validateWebhook } from 'replicate';
import { expect, it, onTestFinished, vi } from 'vitest';
import { useSharedSystem } from './shared-system.ts';
import { postJson } from './client.ts';

const system = useSharedSystem();
const waitOptions = { timeout: 20_000, interval: 20 };
const prompt = 'a red apple on a white background';

interface Delivery {
  headers: IncomingHttpHeaders;
  body: string;
}

async function startReceiver(): Promise<{ url: string; deliveries: Delivery[] }> {
  const deliveries: Delivery[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      deliveries.push({ headers: request.headers, body });
      response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, deliveries };
}

it('Replicate: sends the prediction on start, output, logs and completed, signed for validateWebhook', async () => {
  const replicate = new Replicate({ auth: 'r8_secret', baseUrl: `${system.url}/replicate/v1` });
  const { url, deliveries } = await startReceiver();
  const input = { prompt, num_outputs: 2, num_inference_steps: 6, seed: 7 };
  const model = 'darkroom/emoji-sd';
  const events = ['start', 'output', 'logs', 'completed'] as const;
  const created = await replicate.predictions.create({
    model,
    input,
    webhook: url,
    webhook_events_filter: [...events],
  });
  const predictions = (): Prediction[] => deliveries.map(({ body }) => JSON.parse(body) as Prediction);
  await vi.waitFor(() => expect(predictions().map(({ status }) => status)).toContain('succeeded'), waitOptions);
  const { key } = await replicate.webhooks.default.secret.get();
  for (const { headers, body } of deliveries) expect(await validateWebhook({ headers, body } as never, key)).toBe(true);
  expect(await validateWebhook({ headers: deliveries[0]!.headers, body: '{}' } as never, key)).toBe(false);
  const final = predictions().find(({ status }) => status === 'succeeded')!;
  const polled = await replicate.predictions.get(created.id);
  expect(final).toMatchObject({
    id: created.id,
    model,
    version: 'emoji-sd',
    input: { seed: 7, num_outputs: 2, num_inference_steps: 6 },
    error: null,
    created_at: polled.created_at,
    started_at: polled.started_at,
    completed_at: polled.completed_at,
    urls: polled.urls,
  });
  expect(final.logs).toMatch(/^Using seed: 7\n100%/);
  expect(final.output).toHaveLength(2);
  for (const output of final.output as string[])
    expect((await fetch(output)).headers.get('content-type')).toBe('image/png');
  const open = predictions().filter(({ status }) => status === 'processing');
  expect(open.some(({ output }) => output === null)).toBe(true);
  expect(open.some(({ output }) => (output as string[] | null)?.length === 1)).toBe(true);
  expect(JSON.stringify(deliveries)).not.toContain('apple');
});

it('Replicate: sends only the events of webhook_events_filter', async () => {
  const replicate = new Replicate({ auth: 'r8_secret', baseUrl: `${system.url}/replicate/v1` });
  const { url, deliveries } = await startReceiver();
  await replicate.predictions.create({
    model: 'darkroom/emoji-sd',
    input: { prompt, num_inference_steps: 4 },
    webhook: url,
    webhook_events_filter: ['completed'],
  });
  await vi.waitFor(() => expect(deliveries).toHaveLength(1), waitOptions);
  expect(JSON.parse(deliveries[0]!.body)).toMatchObject({ status: 'succeeded', output: [expect.any(String)] });
});

it('fal: sends the result as payload', async () => {
  fal.config({ proxyUrl: { url: `${system.url}/fal/proxy`, when: 'always' } } as never);
  const { url, deliveries } = await startReceiver();
  const { request_id: id } = await fal.queue.submit('darkroom/emoji-sd', {
    input: { prompt, num_inference_steps: 4, seed: 9 },
    webhookUrl: url,
  });
  await vi.waitFor(() => expect(deliveries).toHaveLength(1), waitOptions);
  const message = JSON.parse(deliveries[0]!.body) as { payload: { images: { url: string }[] } };
  const { data } = await fal.queue.result('darkroom/emoji-sd', { requestId: id });
  const { prompt: _prompt, ...result } = data as { prompt: string };
  expect(message).toEqual({ request_id: id, gateway_request_id: id, status: 'OK', payload: result });
  expect((await fetch(message.payload.images[0]!.url)).status).toBe(200);
});

it('fal: sends the error of a canceled request', async () => {
  const { url, deliveries } = await startReceiver();
  const submit = `${system.url}/fal/queue/darkroom/emoji-sd`;
  const response = await postJson(`${submit}?fal_webhook=${encodeURIComponent(url)}`, {
    prompt,
    num_inference_steps: 200,
  });
  const { request_id: id } = (await response.json()) as { request_id: string };
  await fetch(`${submit}/requests/${id}/cancel`, { method: 'PUT' });
  await vi.waitFor(() => expect(deliveries).toHaveLength(1), waitOptions);
  expect(JSON.parse(deliveries[0]!.body)).toEqual({
    request_id: id,
    gateway_request_id: id,
    status: 'ERROR',
    error: 'The request was canceled.',
    payload: { detail: 'The request was canceled.', error_type: 'client_cancelled' },
  });
});
