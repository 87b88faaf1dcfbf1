/** Input images from every source: what the worker gets and what the owner sees. */
import type { ImageInput } from '@darkroom/kinds';
import { readAttachments, readRequest } from '@darkroom/store';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { anonymousKey, hashKey } from '../auth/api-keys.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { listen } from '../testing/listen.ts';
import { serveImages, servePng } from '../testing/image-server.ts';
import { dataUrl, endsOf, toFormData, halfWhite, openImageApi, plain, pngOf } from '../testing/images.ts';
import type { TestApi } from '../testing/test-api.ts';

async function idOf(response: Response): Promise<string> {
  if (response.status !== 202) throw new Error(`${response.status}: ${await response.text()}`);
  return ((await response.json()) as { request_id: string }).request_id;
}

function sendForm(test: TestApi, form: FormData, headers: Record<string, string> = {}): Promise<Response> {
  return Promise.resolve(test.api.request('/v1/predict', { method: 'POST', body: form, headers }));
}

async function inputOf({ store }: TestApi, id: string): Promise<ImageInput> {
  const found = await readRequest(store, id);
  if (found.status !== 'found') throw new Error(found.status);
  return found.request.input as ImageInput;
}

async function fetchInput(test: TestApi, id: string, name: string): Promise<Buffer> {
  const response = await test.api.request(`/v1/predict/${id}/inputs/${name}`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
  return Buffer.from(await response.arrayBuffer());
}

const as = (name: string) => ({ Authorization: `Bearer ${name}`, 'Content-Type': 'application/json' });

describe('an input image', () => {
  it('is accepted as a data URL and stored in the size of the output', async () => {
    const test = await openImageApi();
    const id = await test.submit({ image: await dataUrl(plain(100, 200)), size: '64x96', strength: 0.5 });
    expect(await inputOf(test, id)).toMatchObject({ width: 64, height: 96, image: true, strength: 0.5 });
    const image = await fetchInput(test, id, 'image');
    expect(await sharp(image).metadata()).toMatchObject({ format: 'png', width: 64, height: 96, channels: 3 });
    const view = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: object };
    expect(view.parameters).toMatchObject({ image: `/v1/predict/${id}/inputs/image`, strength: 0.5, size: '64x96' });
    expect('mask' in view.parameters).toBe(false);
  });

  it('is accepted in a form, with a mask and fields of every type', async () => {
    const test = await openImageApi();
    const { url } = await listen(test);
    const files = { image: await pngOf(plain(128, 128)), mask: await pngOf(halfWhite(128, 128)) };
    const fields = { prompt: '7', n: '2', seed: '9', preview: '{"every": 3}', strength: '0.25', size: 'auto' };
    const body = toFormData({ ...fields, ...files });
    const id = await idOf(await fetch(`${url}/v1/predict`, { method: 'POST', body }));
    const wanted = { prompt: '7', n: 2, seed: 9, previewEvery: 3, strength: 0.25, mask: true };
    expect(await inputOf(test, id)).toMatchObject(wanted);
    const mask = await fetchInput(test, id, 'mask');
    expect(await sharp(mask).metadata()).toMatchObject({ width: 128, height: 128, channels: 1 });
    expect(await endsOf(mask)).toEqual([255, 0]);
  });

  it('is fetched from another server, over redirects', async () => {
    const test = await openImageApi({ config: { inputAllowPrivate: true } });
    const data = await pngOf(plain(64, 64));
    const server = await serveImages((request, response) => {
      if (request.url === '/image') return servePng(data)(request, response);
      response.writeHead(302, { location: '/image' }).end();
    });
    const id = await test.submit({ image: `${server.url}/start` });
    expect(server.requestedPaths).toEqual(['/start', '/image']);
    expect(await sharp(await fetchInput(test, id, 'image')).metadata()).toMatchObject({ width: 64, height: 64 });
  });

  it('can be an output or input of an earlier request, so the parameters of a poll reproduce it', async () => {
    const test = await openImageApi();
    await startWorker(test.store);
    const first = await test.submit({ image: await dataUrl(plain(64, 64)) });
    const run = await runNext(test.store);
    await run.output(0, await pngOf(plain(96, 64)));
    await run.finish();
    const { parameters } = (await (await test.api.request(`/v1/predict/${first}`)).json()) as { parameters: object };
    const again = await idOf(await test.post(parameters));
    expect(await fetchInput(test, again, 'image')).toEqual(await fetchInput(test, first, 'image'));
    // A signed link, as polls return on a server with keys.
    await test.submit({ image: `/v1/predict/${first}/images/0?expires=1&signature=x` });
    const next = await test.submit({ image: `/v1/predict/${first}/images/0` });
    expect(await inputOf(test, next)).toMatchObject({ width: 96, height: 64 });
    const refused = await test.post({ prompt: 'x', image: `/v1/predict/${first}/images/1` });
    expect(await refused.json()).toMatchObject({ message: expect.stringContaining('which was not found') });
  });

  it('is readable and usable by its owner only', async () => {
    const apiKeys = new Map(['alice', 'bob'].map((name) => [hashKey(name), { ...anonymousKey, name }]));
    const test = await openImageApi({ apiKeys });
    const send = async (name: string, image: string): Promise<Response> =>
      test.api.request('/v1/predict', {
        method: 'POST',
        headers: as(name),
        body: JSON.stringify({ prompt: 'x', image }),
      });
    const id = await idOf(await send('alice', await dataUrl(plain(64, 64))));
    const path = `/v1/predict/${id}/inputs/image`;
    const statusFor = async (name: string, at = path): Promise<number> =>
      (await test.api.request(at, { headers: as(name) })).status;
    expect([await statusFor('alice'), await statusFor('bob')]).toEqual([200, 404]);
    expect([(await send('alice', path)).status, (await send('bob', path)).status]).toEqual([202, 400]);
    for (const name of ['mask', 'constructor'])
      expect(await statusFor('alice', `/v1/predict/${id}/inputs/${name}`)).toBe(404);
  });

  it('is sent to the worker, and deleted at the end if STORE_PROMPTS is off', async () => {
    const test = await openImageApi({ config: { storePrompts: false } });
    await startWorker(test.store);
    const id = await test.submit({ image: await dataUrl(plain(64, 64)), mask: await dataUrl(halfWhite(64, 64)) });
    const stored = JSON.parse((await test.store.redis.get(test.store.keysOf('tiny').input(id)))!) as object;
    expect(stored).toMatchObject({ attachments: ['image', 'mask'], input: { image: true, mask: true, strength: 1 } });
    expect(JSON.stringify(stored)).not.toContain('base64');
    expect([...(await readAttachments(test.store, id)).keys()].toSorted()).toEqual(['image', 'mask']);
    const run = await runNext(test.store);
    await run.output(0, Buffer.from('png'));
    await run.finish();
    expect((await test.api.request(`/v1/predict/${id}/inputs/image`)).status).toBe(404);
    const view = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: object };
    expect(view.parameters).toMatchObject({ prompt: null, image: null, mask: null });
  });

  it('is part of the Idempotency-Key fingerprint: another image is a conflict', async () => {
    const test = await openImageApi();
    const key = { 'Idempotency-Key': 'one' };
    const send = async (color: string): Promise<Response> =>
      sendForm(test, toFormData({ prompt: 'x', image: await pngOf(plain(64, 64, color)) }), key);
    const first = await send('#f00');
    const again = await send('#f00');
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await idOf(again)).toBe(await idOf(first));
    expect((await send('#00f')).status).toBe(409);
  });

  it('is not fetched again for a replay under the same Idempotency-Key', async () => {
    const test = await openImageApi({ config: { inputAllowPrivate: true } });
    const data = await pngOf(plain(64, 64));
    const server = await serveImages((request, response) => {
      if (server.requestedPaths.length === 1) return servePng(data)(request, response);
      response.writeHead(410).end();
    });
    const body = JSON.stringify({ prompt: 'x', image: `${server.url}/once` });
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'one' };
    const send = async (): Promise<Response> => test.api.request('/v1/predict', { method: 'POST', headers, body });
    const first = await idOf(await send());
    const again = await send();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await idOf(again)).toBe(first);
    expect(server.requestedPaths).toEqual(['/once']);
  });

  it('adds no field or key to a request without one', async () => {
    const test = await openImageApi();
    const id = await test.submit();
    const stored = JSON.parse((await test.store.redis.get(test.store.keysOf('tiny').input(id)))!) as { input: object };
    expect('attachments' in stored || 'image' in stored.input || 'strength' in stored.input).toBe(false);
    expect(await test.store.redis.hexists(test.store.keysOf('tiny').request(id), 'attached')).toBe(0);
    const [model] = ((await (await test.api.request('/v1/models')).json()) as { data: object[] }).data;
    expect(model).toMatchObject({ takes: ['image', 'mask'] });
  });
});
