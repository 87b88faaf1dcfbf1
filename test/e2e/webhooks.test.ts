/** Webhooks from the real system to real receivers. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { submit, postJson } from './client.ts';
import { type SharedSystem, useSharedSystem } from './shared-system.ts';
import { secretOf, startReceiver, typesOf, untilAllDelivered } from './webhook-receiver.ts';

const system = useSharedSystem();
const waitOptions = { timeout: 10_000, interval: 20 };
const quick = { prompt: 'a red apple on a white background', num_inference_steps: 4, seed: 11, preview: 'off' };

/** Runs the delayed retries of deliveries now. */
async function promoteNext({ store }: SharedSystem, attempts: number): Promise<void> {
  const queue = store.deliveries();
  await vi.waitFor(async () => {
    const [job] = await queue.getDelayed();
    expect(job?.attemptsMade).toBe(attempts);
  }, waitOptions);
  await queue.promoteJobs();
}

it('retries a delivery that failed twice with the same id and a valid signature', async () => {
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

it.each(['emoji-writer', 'emoji-writer-diffusion'])('the webhook of a %s request contains the text', async (model) => {
  const receiver = await startReceiver(system);
  const body = { model, messages: [{ role: 'user', content: 'something cold' }], webhook_url: receiver.url };
  const response = await postJson(
    `${system.url}/v1/predict`,
    { ...body, n: 2, temperature: 1.5, seed: 4 },
    { prefer: 'wait=30' },
  );
  const { request_id: id, texts } = (await response.json()) as { request_id: string; texts: { text: string }[] };
  await vi.waitFor(() => expect(typesOf(receiver, id)).toEqual(['request.succeeded']), waitOptions);
  expect(texts[0]!.text).not.toBe('');
  expect(receiver.messages[0]!.data).toMatchObject({ texts, finish_reasons: ['stop', 'stop'] });
  expect(JSON.stringify(receiver.messages)).not.toContain('something cold');
});

it('lists a failed delivery, and sends it again on request', async () => {
  const receiver = await startReceiver(system, (count) => (count === 1 ? 410 : 204));
  const id = await submit(system.url, { ...quick, webhook_url: receiver.url });
  const deliveries = `${system.url}/v1/webhooks/deliveries`;
  const list = async () =>
    ((await (await fetch(`${deliveries}?status=failed`)).json()) as { data: { id: string }[] }).data;
  await vi.waitFor(async () => expect(await list()).toHaveLength(1), waitOptions);
  const [delivery] = await list();
  expect(delivery).toMatchObject({
    request_id: id,
    type: 'request.succeeded',
    url: receiver.url,
    last_error: 'HTTP 410',
  });
  const resend = () => fetch(`${deliveries}/${delivery!.id}/resend`, { method: 'POST' });
  expect((await resend()).status).toBe(202);
  await vi.waitFor(() => expect(receiver.messages).toHaveLength(2), waitOptions);
  await untilAllDelivered(system);
  expect(new Set(receiver.messages.map((message) => message.id))).toEqual(new Set([delivery!.id]));
  expect(await list()).toEqual([]);
  expect((await resend()).status).toBe(404);
});

it('the receiver of docs/webhooks.md runs as written', async () => {
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
  const firstLine = once(lines, 'line') as Promise<[string]>;
  await vi.waitFor(
    async () => expect((await fetch(`http://127.0.0.1:${port}`, { method: 'POST' })).status).toBe(400),
    waitOptions,
  );
  const id = await submit(system.url, { ...quick, webhook_url: `http://127.0.0.1:${port}/darkroom` });
  expect((await firstLine)[0]).toMatch(new RegExp(`^msg_\\w+ request\\.succeeded ${id}$`));
});
