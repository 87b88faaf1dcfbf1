/** Fair use of the memory for images: idle clients cannot block others. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { anonymousKey, hashKey } from '../auth/api-keys.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { listen } from '../testing/listen.ts';
import { serveImages } from '../testing/image-server.ts';
import { dataUrl, toFormData, halfWhite, openImageApi, plain, pngOf } from '../testing/images.ts';
import { createImageIntake } from './image-intake.ts';
import { readStoredImage } from './read-stored-image.ts';
import { createStoreGuard } from '../server/store-guard.ts';
import type { ApiKey } from '../http/api-env.ts';

const config = { maxInputPixels: 4096, maxBodyBytes: 65_536, inputAllowPrivate: true };
const { maxFileBytes } = createImageIntake(config);

/** Starts a server that sends no Content-Length, and answers only once `atOnce` files were requested. */
async function serveUnmeasured(atOnce: number): Promise<{ image: string; mask: string }> {
  const [image, mask] = [await pngOf(plain(64, 64)), await pngOf(halfWhite(64, 64))];
  const held: (() => void)[] = [];
  let requested = 0;
  const server = await serveImages((request, response) => {
    const data = request.url === '/mask' ? mask : image;
    held.push(() => void response.writeHead(200, { 'content-type': 'image/png' }).end(data));
    requested++;
    if (requested >= atOnce) for (const answer of held.splice(0)) answer();
  });
  return { image: `${server.url}/image`, mask: `${server.url}/mask` };
}

function keysOf(keys: Readonly<Record<string, Partial<ApiKey>>>): Map<string, ApiKey> {
  return new Map(Object.entries(keys).map(([name, key]) => [hashKey(name), { ...anonymousKey, ...key, name }]));
}

const as = (name: string) => ({ Authorization: `Bearer ${name}` });

/** Begins a form of this many bytes and sends only its headers. */
async function beginForm(url: string, name: string, bytes: number): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  const head = [
    'POST /v1/predict HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${name}`,
    'Content-Type: multipart/form-data; boundary=here',
    `Content-Length: ${bytes}`,
  ];
  await once(socket, 'connect');
  socket.write([...head, '', '--here\r\n'].join('\r\n'));
  return socket;
}

it('two concurrent requests fetch image and mask from servers without Content-Length', async () => {
  const test = await openImageApi({ config });
  const urls = await serveUnmeasured(2);
  const answers = await Promise.all([0, 1].map(() => test.post({ prompt: 'x', ...urls })));
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
});

it('a form may refer to images by URL, with and without Content-Length', async () => {
  const test = await openImageApi({ config });
  const { url } = await listen(test);
  const urls = await serveUnmeasured(1);
  const form = new Response(toFormData({ prompt: 'x', ...urls }));
  const headers = { 'Content-Type': form.headers.get('content-type')! };
  const measured = new Uint8Array(await form.clone().arrayBuffer());
  for (const body of [measured, form.body]) {
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    expect((await fetch(`${url}/v1/predict`, init)).status).toBe(202);
  }
});

it('rejects a form with a file and a URL if memory for both is short', async () => {
  const test = await openImageApi({ config, apiKeys: keysOf({ alice: {} }) });
  const image = await pngOf(plain(64, 64));
  const { mask } = await serveUnmeasured(1);
  const send = (body: FormData): Promise<Response> =>
    Promise.resolve(test.api.request('/v1/predict', { method: 'POST', headers: as('alice'), body }));
  const large = await serveImages((_request, response) => {
    response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.alloc(maxFileBytes - image.byteLength + 1));
  });
  const refused = await send(toFormData({ prompt: 'x', image, mask: large.url }));
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
  expect((await send(toFormData({ prompt: 'x', image, mask }))).status).toBe(202);
});

it('stalled forms and fetches do not block uploads, with and without keys', async () => {
  const test = await openImageApi({ config });
  const { url } = await listen(test);
  const silent = await serveImages((_request, response) => {
    response.writeHead(200, { 'content-type': 'image/png', 'content-length': maxFileBytes }).write('\x89PNG');
  });
  const client = new AbortController();
  const fetches = Array.from({ length: 3 }, () =>
    fetch(`${url}/v1/predict`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'x', image: silent.url }),
      signal: client.signal,
    }).catch(() => {}),
  );
  await expect.poll(() => silent.requestedPaths.length).toBe(3);
  for (let count = 0; count < 3; count++) await beginForm(url, 'anonymousKey', maxFileBytes);
  const body = toFormData({ prompt: 'x', image: await pngOf(plain(64, 64)) });
  expect((await fetch(`${url}/v1/predict`, { method: 'POST', body })).status).toBe(202);
  client.abort();
  await Promise.all(fetches);
});

it('stalled forms block only their own owner', async () => {
  const test = await openImageApi({ config, apiKeys: keysOf({ alice: {}, bob: {} }) });
  const { url } = await listen(test);
  const tooMuch = await beginForm(url, 'alice', 2 * maxFileBytes);
  expect(String(await once(tooMuch, 'data'))).toContain('413');
  for (let count = 0; count < 3; count++) await beginForm(url, 'alice', maxFileBytes);
  const body = toFormData({ prompt: 'x', image: await pngOf(plain(64, 64)) });
  for (let count = 0; count < 3; count++) {
    const response = await fetch(`${url}/v1/predict`, { method: 'POST', headers: as('bob'), body });
    expect(response.status).toBe(202);
  }
});

it('applies the rate limit before a form is read, except for possible replays', async () => {
  const apiKeys = keysOf({ alice: { requestsPerMinute: 1 } });
  const test = await openImageApi({ config, apiKeys });
  const { url } = await listen(test);
  const image = await pngOf(plain(64, 64));
  const send = async (more: object): Promise<Response> =>
    fetch(`${url}/v1/predict`, {
      method: 'POST',
      headers: { ...as('alice'), ...more },
      body: toFormData({ prompt: 'x', image }),
    });
  const key = { 'Idempotency-Key': 'one' };
  const first = await send(key);
  expect([first.status, first.headers.get('ratelimit-remaining')]).toEqual([202, '0']);
  const begun = await beginForm(url, 'alice', maxFileBytes);
  expect(String(await once(begun, 'data'))).toContain('429');
  const again = await send(key);
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true']);
  expect((await send({ 'Idempotency-Key': 'two' })).status).toBe(429);
});

it('rejects a stored image by its metadata, and reads it when memory is free', async () => {
  const test = await openImageApi({ config });
  await startWorker(test.store);
  const id = await test.submit({ image: await dataUrl(plain(64, 64)), size: '64x64' });
  const run = await runNext(test.store);
  const data = Buffer.alloc(maxFileBytes + 1);
  const image = await pngOf(plain(64, 64));
  await run.output(0, image, undefined, { width: 96, height: 64 });
  const refusalOf = async (image: string): Promise<unknown> => {
    const response = await test.post({ prompt: 'x', image });
    return [response.status, ((await response.json()) as { message: string }).message];
  };
  expect(await refusalOf(`/v1/predict/${id}/images/0`)).toEqual([
    400,
    'image is 96x64 pixels, expected at most 4096 pixels',
  ]);
  const large = await test.submit({ image: await dataUrl(plain(64, 64)), size: '64x64' });
  await run.finish();
  const next = await runNext(test.store);
  await next.output(0, data);
  expect(await refusalOf(`/v1/predict/${large}/images/0`)).toEqual([
    400,
    `image is ${maxFileBytes + 1} bytes, expected at most ${maxFileBytes} bytes`,
  ]);
  const images = createImageIntake(config);
  const context = { images, withStore: createStoreGuard(test.store, { redisMs: 3000, bytesMs: 10_000 }) };
  const waiter = { owner: '', signal: new AbortController().signal };
  const path = `/v1/predict/${id}/inputs/image`;
  const all = images.files.open(2 * maxFileBytes, waiter);
  await all.grow(2 * maxFileBytes);
  await expect(readStoredImage(context, path, { ...waiter, holdsOtherFile: true })).rejects.toMatchObject({
    status: 503,
  });
  const reading = readStoredImage(context, path, waiter);
  all.free();
  const read = await reading;
  if (read.status !== 'read') throw new Error(read.status);
  // The request holds exactly the memory that it needs.
  const rest = images.files.open(2 * maxFileBytes, { ...waiter, holdsOtherFile: true });
  await rest.grow(2 * maxFileBytes - read.bytes.byteLength);
  await expect(rest.grow(1)).rejects.toMatchObject({ status: 503 });
});
