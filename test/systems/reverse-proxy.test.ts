/** The nginx configuration of docs/reverse-proxies.md: the API under a path, over TLS, with all kinds of clients. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { createFalClient } from '@fal-ai/client';
import { createClient } from '@darkroom/client';
import { freePorts } from '@darkroom/testing';
import Replicate, { type FileOutput } from 'replicate';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launchChromium, pageTimeoutMs } from '../e2e/chromium.ts';
import { startReceiver } from '../e2e/webhook-receiver.ts';
import { startSystem, stopSystem, type System } from '../e2e/system.ts';

const page = readFileSync(new URL('../../docs/reverse-proxies.md', import.meta.url), 'utf8');
const block = /```nginx\n(?<code>.*?)```/s.exec(page)!.groups!['code']!;
/** Host name of the public URL. */
const name = 'localhost';
const quick = { model: 'emoji-sd', prompt: 'a red apple on a white background', num_inference_steps: 4 };

let system: System;
let directory: string;
let publicUrl: string;
let nginx: ReturnType<typeof spawn>;
let browser: Browser;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'darkroom-nginx-'));
  const [port = 0, apiPort = 0] = await freePorts(2);
  publicUrl = `https://${name}:${port}/darkroom`;
  const key = join(directory, 'example.com.key');
  const certificate = join(directory, 'example.com.crt');
  const names = `-subj /CN=${name} -addext subjectAltName=DNS:${name}`;
  const files = `-keyout ${key} -out ${certificate}`;
  execFileSync('openssl', `req -x509 -newkey rsa:2048 -nodes -days 2 ${names} ${files}`.split(' '), {
    stdio: 'ignore',
  });
  startNginx(port, apiPort);
  system = await startSystem({
    parts: [
      { name: 'api', environment: { PORT: `${apiPort}` } },
      'batch-former',
      'janitor',
      'worker',
      'webhook-sender',
    ],
    environment: { PUBLIC_URL: publicUrl, WEBHOOK_ALLOW_PRIVATE: 'true' },
  });
  browser = await launchChromium();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  if (system !== undefined) await stopSystem(system);
  nginx?.kill();
  if (nginx?.exitCode === null) await once(nginx, 'exit');
  rmSync(directory, { recursive: true });
});

/** Starts nginx with the documented server block, its ports and files replaced by those of this test. */
function startNginx(port: number, apiPort: number): void {
  const replacements = {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    'server_name example.com': `server_name ${name}`,
    '/etc/ssl/': `${directory}/`,
    '127.0.0.1:8080': `127.0.0.1:${apiPort}`,
  };
  let server = block;
  for (const [documented, here] of Object.entries(replacements)) {
    expect(server).toContain(documented);
    server = server.replaceAll(documented, here);
  }
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const paths = temporary.map((kind) => `${kind}_temp_path ${directory}/${kind};`).join('\n');
  const http = `http {\naccess_log off;\n${paths}\n${server}\n}`;
  const main = `daemon off;\npid ${directory}/nginx.pid;\nerror_log ${directory}/error.log;\nevents {}\n${http}\n`;
  writeFileSync(join(directory, 'nginx.conf'), main);
  nginx = spawn('nginx', ['-c', join(directory, 'nginx.conf'), '-p', directory], { stdio: 'ignore' });
}

/** `fetch` that accepts the self-signed certificate, which Node's fetch cannot be told to do. */
async function fetchTls(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
  const headers = Object.fromEntries(request.headers);
  const outgoing = httpsRequest(request.url, { method: request.method, headers, rejectUnauthorized: false });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  const chunks = new ReadableStream<Uint8Array>({
    async start(controller) {
      for await (const chunk of incoming) controller.enqueue(chunk as Uint8Array);
      controller.close();
    },
  });
  const status = incoming.statusCode!;
  const isEmpty = status === 204 || status === 304;
  return new Response(isEmpty ? null : chunks, { status, headers: new Headers(incoming.headers as never) });
}

async function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  const all = { 'content-type': 'application/json', ...headers };
  return fetchTls(`${publicUrl}${path}`, { method: 'POST', headers: all, body: JSON.stringify(body) });
}

/** Fetches a URL from a response, resolved against the request's URL as a client would. */
async function follow(url: string): Promise<Response> {
  return fetchTls(new URL(url, `${publicUrl}/v1/predict`));
}

it('returns URLs under the public path that resolve to the request, its events and its image', async () => {
  const response = await post('/v1/predict', quick);
  const accepted = (await response.json()) as { request_id: string; urls: Record<string, string> };
  const self = `/darkroom/v1/predict/${accepted.request_id}`;
  expect([response.status, response.headers.get('location'), accepted.urls]).toEqual([
    202,
    self,
    { self, events: `${self}/events`, cancel: self },
  ]);
  const events = await text((await follow(accepted.urls['events']!)).body!);
  expect(events).toContain('data: [DONE]');
  expect(events).toContain(`"url":"${self}/images/0"`);
  const polled = (await (await follow(accepted.urls['self']!)).json()) as { status: string; images: { url: string }[] };
  expect(polled).toMatchObject({ status: 'succeeded', urls: accepted.urls, images: [{ url: `${self}/images/0` }] });
  const image = await follow(polled.images[0]!.url);
  expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/png']);
  // The image path also works as an input image.
  const again = await post(
    '/v1/predict',
    { ...quick, image: polled.images[0]!.url, strength: 0.5 },
    { prefer: 'wait=60' },
  );
  const edited = (await again.json()) as { status: string; parameters: { image: string } };
  expect(edited.status).toBe('succeeded');
  expect((await follow(edited.parameters.image)).status).toBe(200);
});

it('streams events without buffering', async () => {
  const { request_id: id } = (await (await post('/v1/predict', { ...quick, num_inference_steps: 60 })).json()) as {
    request_id: string;
  };
  const { body } = await fetchTls(`${publicUrl}/v1/predict/${id}/events`);
  const reader = body!.pipeThrough(new TextDecoderStream() as never).getReader() as ReadableStreamDefaultReader<string>;
  let seen = '';
  while (!seen.includes('event: progress')) seen += (await reader.read()).value;
  const polled = (await (await fetchTls(`${publicUrl}/v1/predict/${id}`)).json()) as { status: string };
  // A buffering proxy would deliver the first event together with the last.
  expect(polled.status).toBe('running');
  await reader.cancel();
  await fetchTls(`${publicUrl}/v1/predict/${id}`, { method: 'DELETE' });
});

it('passes large uploads to the API, which validates them', async () => {
  const form = new FormData();
  form.set('prompt', 'a fox');
  form.set('image', new Blob([Buffer.alloc(8_000_000)]), 'large.png');
  const response = await fetchTls(`${publicUrl}/v1/predict`, { method: 'POST', body: form });
  expect(await response.json()).toMatchObject({ error: { param: 'image' } });
});

it('serves the clients of fal, Replicate and Darkroom', async () => {
  const fal = createFalClient({
    credentials: 'id:secret',
    proxyUrl: { url: `${publicUrl}/fal/proxy`, when: 'always' },
    fetch: fetchTls,
  });
  const input = { prompt: quick.prompt, num_inference_steps: 4 };
  const queued = await fal.queue.submit('darkroom/emoji-sd', { input });
  expect(queued.status_url).toBe(`${publicUrl}/fal/queue/darkroom/emoji-sd/requests/${queued.request_id}/status`);
  await fal.queue.subscribeToStatus('darkroom/emoji-sd', { requestId: queued.request_id, pollInterval: 20 });
  const { data } = await fal.queue.result('darkroom/emoji-sd', { requestId: queued.request_id });
  const { url } = (data as { images: { url: string }[] }).images[0]!;
  expect(url).toBe(`${publicUrl}/v1/predict/${queued.request_id}/images/0`);
  expect((await fetchTls(url)).status).toBe(200);

  const replicate = new Replicate({ auth: 'r8', baseUrl: `${publicUrl}/replicate/v1`, fetch: fetchTls });
  const prediction = await replicate.predictions.create({ model: 'darkroom/emoji-sd', input });
  expect(prediction.urls.get).toBe(`${publicUrl}/replicate/v1/predictions/${prediction.id}`);
  const [file] = (await replicate.run('darkroom/emoji-sd', { input })) as FileOutput[];
  expect((await buffer(file as never)).byteLength).toBeGreaterThan(100);
  const listed = (await (await fetchTls(`${publicUrl}/replicate/v1/models`)).json()) as { results: { url: string }[] };
  expect((await fetchTls(listed.results[0]!.url)).status).toBe(200);

  const client = createClient({ baseUrl: publicUrl, fetch: fetchTls });
  const done = await client.wait((await client.submit(quick as never)).request_id);
  const [image] = (done as unknown as { images: { url: string }[] }).images;
  expect((await fetchTls(new URL(image!.url, publicUrl))).status).toBe(200);
});

it('sends webhooks with absolute public URLs of images', async () => {
  const receiver = await startReceiver({ url: system.url });
  const { request_id: id } = (await (await post('/v1/predict', { ...quick, webhook_url: receiver.url })).json()) as {
    request_id: string;
  };
  const urlsOf = (): string[] =>
    JSON.stringify(receiver.messages).match(new RegExp(`https://[^"\\\\]+/${id}/images/0`, 'g')) ?? [];
  await expect.poll(urlsOf, { timeout: 60_000 }).not.toEqual([]);
  expect(urlsOf()[0]).toBe(`${publicUrl}/v1/predict/${id}/images/0`);
});

it('serves the page and the API docs, and draws an image from the page', { timeout: 120_000 }, async () => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  context.setDefaultTimeout(pageTimeoutMs);
  const tab = await context.newPage();
  const failed: string[] = [];
  tab.on('response', (response) => response.status() >= 400 && failed.push(`${response.status()} ${response.url()}`));
  await tab.goto(publicUrl);
  expect(tab.url()).toBe(`${publicUrl}/client.html`);
  await tab.getByLabel('Prompt', { exact: true }).fill(quick.prompt);
  await tab.getByRole('button', { name: 'Develop' }).click();
  const image = tab.locator('main img[src^="blob:"]').first();
  await image.waitFor();
  await tab.screenshot({ path: process.env['SCREENSHOT'] ?? join(directory, 'page.png') });
  await tab.goto(`${publicUrl}/docs`);
  await tab.getByText('/v1/predict', { exact: true }).first().waitFor();
  expect(failed).toEqual([]);
  await context.close();
});

it('the admin page shows why the API refuses access without ADMIN_KEYS, and asks for no key', async () => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const tab = await context.newPage();
  await tab.goto(`${publicUrl}/admin`);
  const expected = 'Without ADMIN_KEYS only this machine has admin access';
  await tab.getByText(expected).waitFor({ timeout: pageTimeoutMs });
  expect(await tab.getByRole('dialog').count()).toBe(0);
  await context.close();
});
