/** Webhooks from the real system to real receivers, checked with the library that receivers use. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { freePort } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ended, submit } from './client.ts';
import { openSystem, type System } from './system.ts';

interface Message {
  id: string;
  type: string;
  data: { request_id: string; status: string; step?: number; images?: { url: string }[] };
}

interface Receiver {
  url: string;
  /** What came, with a signature that holds. */
  messages: Message[];
  /** What came without one. */
  forged: number;
}

const patience = { timeout: 60_000, interval: 20 };
const quick = { prompt: 'a red apple on a white background', num_inference_steps: 4, seed: 11, preview: 'off' };
const environment = { WEBHOOK_ALLOW_PRIVATE: 'true' };
const everything = ['api', 'batch-former', 'janitor', 'worker', 'webhook-sender'] as const;

async function secretOf({ url }: System): Promise<string> {
  return ((await (await fetch(`${url}/v1/webhooks/secret`)).json()) as { key: string }).key;
}

/** Answers the n-th message with `answer(n)`; with undefined never. */
async function startReceiver(
  system: System,
  answer: (count: number) => number | undefined = () => 204,
): Promise<Receiver> {
  const webhook = new Webhook(await secretOf(system));
  const receiver: Receiver = { url: '', messages: [], forged: 0 };
  const server = createServer((request, response) => void receive(request, response));
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    try {
      const { type, data } = webhook.verify(body, request.headers as Record<string, string>) as Message;
      receiver.messages.push({ id: String(request.headers['webhook-id']), type, data });
    } catch {
      receiver.forged++;
    }
    const code = answer(receiver.messages.length);
    if (code !== undefined) response.writeHead(code).end();
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return receiver;
}

function typesOf({ messages }: Receiver, id: string): string[] {
  return messages.filter(({ data }) => data.request_id === id).map(({ type }) => type);
}

/** Lets deliveries that wait for their next attempt go now, instead of waiting with them. */
async function promoteNext({ store }: System, attempts: number): Promise<void> {
  const queue = store.deliveries();
  await vi.waitFor(async () => {
    const [job] = await queue.getDelayed();
    expect(job?.attemptsMade).toBe(attempts);
  }, patience);
  await queue.promoteJobs();
}

async function untilAllDelivered({ store }: System): Promise<void> {
  const queue = store.deliveries();
  await vi.waitFor(async () => expect(await queue.getJobCountByTypes('wait', 'active', 'delayed')).toBe(0), patience);
}

it('a receiver that fails twice gets the same signed message a third time', async () => {
  const system = await openSystem({ parts: everything, environment });
  const receiver = await startReceiver(system, (count) => (count < 3 ? 503 : 204));
  const id = await submit(system.url, { ...quick, webhook_url: receiver.url });
  await promoteNext(system, 1);
  await promoteNext(system, 2);
  await untilAllDelivered(system);
  expect(typesOf(receiver, id)).toEqual(['request.succeeded', 'request.succeeded', 'request.succeeded']);
  expect(new Set(receiver.messages.map((message) => message.id)).size).toBe(1);
  expect(receiver.forged).toBe(0);
  const [image] = receiver.messages[0]!.data.images!;
  expect((await fetch(new URL(image!.url, system.url))).headers.get('content-type')).toBe('image/png');
  expect(JSON.stringify(receiver.messages)).not.toContain('apple');
  const log = readFileSync(system.logFile, 'utf8');
  expect(log).not.toContain(await secretOf(system));
  expect(log).toContain(`"webhook_id":"${receiver.messages[0]!.id}"`);
});

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
  // Each sender moves what it took out of the outbox, in its own time.
  await vi.waitFor(() => {
    expect(typesOf(receiver, succeeded)).toContain('request.succeeded');
    expect(typesOf(receiver, canceled)).toContain('request.canceled');
    expect(typesOf(receiver, expired)).toContain('request.expired');
  }, patience);
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

it('a failed delivery is listed, and sent again when asked for', async () => {
  const system = await openSystem({ parts: everything, environment });
  const receiver = await startReceiver(system, (count) => (count === 1 ? 410 : 204));
  const id = await submit(system.url, { ...quick, webhook_url: receiver.url });
  const deliveries = `${system.url}/v1/webhooks/deliveries`;
  const list = async () =>
    ((await (await fetch(`${deliveries}?status=failed`)).json()) as { data: { id: string }[] }).data;
  await vi.waitFor(async () => expect(await list()).toHaveLength(1), patience);
  const [delivery] = await list();
  expect(delivery).toMatchObject({
    request_id: id,
    type: 'request.succeeded',
    url: receiver.url,
    last_error: 'HTTP 410',
  });
  const resend = () => fetch(`${deliveries}/${delivery!.id}/resend`, { method: 'POST' });
  expect((await resend()).status).toBe(202);
  await vi.waitFor(() => expect(receiver.messages).toHaveLength(2), patience);
  await untilAllDelivered(system);
  expect(new Set(receiver.messages.map((message) => message.id))).toEqual(new Set([delivery!.id]));
  expect(await list()).toEqual([]);
  expect((await resend()).status).toBe(404);
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

it('the receiver of docs/webhooks.md runs as it is written there', async () => {
  const system = await openSystem({ parts: everything, environment });
  const page = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-receiver-'));
  writeFileSync(join(directory, 'receiver.mjs'), /```js\n(?<code>.*?)```/s.exec(page)!.groups!['code']!);
  symlinkSync(new URL('../../node_modules', import.meta.url).pathname, join(directory, 'node_modules'));
  const port = await freePort();
  const child = spawn(process.execPath, ['receiver.mjs'], {
    cwd: directory,
    env: { ...process.env, WEBHOOK_SECRET: await secretOf(system), PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    child.kill();
    rmSync(directory, { recursive: true, force: true });
  });
  const lines = createInterface({ input: child.stdout });
  const said = once(lines, 'line') as Promise<[string]>;
  await vi.waitFor(
    async () => expect((await fetch(`http://127.0.0.1:${port}`, { method: 'POST' })).status).toBe(400),
    patience,
  );
  const id = await submit(system.url, { ...quick, webhook_url: `http://127.0.0.1:${port}/darkroom` });
  expect((await said)[0]).toMatch(new RegExp(`^msg_\\w+ request\\.succeeded ${id}$`));
});
