/** Who gets room for pictures when, and who cannot keep it from others. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { anybody, type ApiKey, hashKey } from '../auth/api-keys.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { listen } from '../testing/listen.ts';
import { servePictures, servePng } from '../testing/picture-server.ts';
import { dataUrl, formOf, halfWhite, openPictureApi, plain, pngOf } from '../testing/pictures.ts';
import { createPictureDoor } from './picture-door.ts';
import { readStoredPicture } from './read-stored-picture.ts';

const config = { maxInputPixels: 4096, maxBodyBytes: 65_536, inputAllowPrivate: true };
const { maxFileBytes } = createPictureDoor(config);

/** One that does not say how long its files are, and answers no earlier than so many were asked for. */
async function serveUnmeasured(atOnce: number): Promise<{ image: string; mask: string }> {
  const [image, mask] = [await pngOf(plain(64, 64)), await pngOf(halfWhite(64, 64))];
  const held: (() => void)[] = [];
  let asked = 0;
  const server = await servePictures((request, response) => {
    const data = request.url === '/mask' ? mask : image;
    held.push(() => void response.writeHead(200, { 'content-type': 'image/png' }).end(data));
    asked++;
    if (asked >= atOnce) for (const answer of held.splice(0)) answer();
  });
  return { image: `${server.url}/image`, mask: `${server.url}/mask` };
}

function keysOf(keys: Readonly<Record<string, Partial<ApiKey>>>): ReadonlyMap<string, ApiKey> {
  return new Map(Object.entries(keys).map(([name, key]) => [hashKey(name), { ...anybody, ...key, name }]));
}

const as = (name: string) => ({ Authorization: `Bearer ${name}` });

/** Begins a form of so many bytes, and sends no more of it than its head. */
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

it('two requests at once get image and mask from servers that do not say how long they are', async () => {
  const test = await openPictureApi({ config });
  const urls = await serveUnmeasured(2);
  const answers = await Promise.all([0, 1].map(() => test.post({ prompt: 'x', ...urls })));
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
});

it('a form gets pictures by URL, whether it says how long it is or not', async () => {
  const test = await openPictureApi({ config });
  const { url } = await listen(test);
  const urls = await serveUnmeasured(1);
  const form = new Response(formOf({ prompt: 'x', ...urls }));
  const headers = { 'Content-Type': form.headers.get('content-type')! };
  const measured = new Uint8Array(await form.clone().arrayBuffer());
  for (const body of [measured, form.body]) {
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    expect((await fetch(`${url}/v1/predict`, init)).status).toBe(202);
  }
});

it('a form with a file and a URL is turned away where only one of them has room, and taken otherwise', async () => {
  const test = await openPictureApi({ config, apiKeys: keysOf({ alice: {} }) });
  const { mask } = await serveUnmeasured(1);
  const small = formOf({ prompt: 'x', image: await pngOf(plain(64, 64)), mask });
  const send = (body: FormData): Promise<Response> =>
    Promise.resolve(test.api.request('/v1/predict', { method: 'POST', headers: as('alice'), body }));
  const refused = await send(small);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
  const measured = await servePictures(servePng(await pngOf(halfWhite(64, 64))));
  const taken = formOf({ prompt: 'x', image: await pngOf(plain(64, 64)), mask: measured.url });
  expect((await send(taken)).status).toBe(202);
});

it('forms that were begun and do not come keep nobody waiting but who began them', async () => {
  const test = await openPictureApi({ config, apiKeys: keysOf({ alice: {}, bob: {} }) });
  const { url } = await listen(test);
  const tooMuch = await beginForm(url, 'alice', 2 * maxFileBytes);
  expect(String(await once(tooMuch, 'data'))).toContain('413');
  for (let count = 0; count < 3; count++) await beginForm(url, 'alice', maxFileBytes);
  const body = formOf({ prompt: 'x', image: await pngOf(plain(64, 64)) });
  for (let count = 0; count < 3; count++) {
    const response = await fetch(`${url}/v1/predict`, { method: 'POST', headers: as('bob'), body });
    expect(response.status).toBe(202);
  }
});

it('a key that has sent too much is told before its form is read, except of what may be stored already', async () => {
  const apiKeys = keysOf({ alice: { requestsPerMinute: 1 } });
  const test = await openPictureApi({ config, apiKeys });
  const { url } = await listen(test);
  const image = await pngOf(plain(64, 64));
  const send = async (more: object): Promise<Response> =>
    fetch(`${url}/v1/predict`, {
      method: 'POST',
      headers: { ...as('alice'), ...more },
      body: formOf({ prompt: 'x', image }),
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

it('a picture that is here is refused by what is known of it, and read when there is room for it', async () => {
  const test = await openPictureApi({ config });
  await startWorker(test.store);
  const id = await test.submit({ image: await dataUrl(plain(64, 64)), size: '64x64' });
  const run = await runNext(test.store);
  const data = Buffer.alloc(maxFileBytes + 1);
  const picture = await pngOf(plain(64, 64));
  await run.output(0, picture, undefined, { width: 96, height: 64 });
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
  const pictures = createPictureDoor(config);
  const context = { pictures, askStore: async <R>(ask: (store: typeof test.store) => Promise<R>) => ask(test.store) };
  const waiter = { owner: '', signal: new AbortController().signal };
  const path = `/v1/predict/${id}/inputs/image`;
  const letGo = await pictures.files.take(2 * maxFileBytes, waiter);
  await expect(readStoredPicture(context, path, { ...waiter, isHolding: true })).rejects.toMatchObject({ status: 503 });
  const reading = readStoredPicture(context, path, waiter);
  letGo();
  const read = await reading;
  if (read.status !== 'read') throw new Error(read.status);
  // It has as much room as it needs, and no more.
  (await pictures.files.take(2 * maxFileBytes - read.bytes.byteLength, { ...waiter, isHolding: true }))();
  await expect(pictures.files.take(2 * maxFileBytes, { ...waiter, isHolding: true })).rejects.toMatchObject({
    status: 503,
  });
});
