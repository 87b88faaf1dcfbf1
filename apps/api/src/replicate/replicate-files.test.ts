/** Uploads: visible to their owner only, limited, and read as inputs without a network fetch. */
import { readAttachment } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { openImageApi, plain, pngOf } from '../testing/images.ts';
import type { TestApi, TestApiOptions } from '../testing/test-api.ts';

const root = '/replicate/v1';
const limits = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
const apiKeys = new Map(['alice', 'bob'].map((name) => [hashKey(name), { name, ...limits }]));
const as = (name: string) => ({ Authorization: `Bearer ${name}` });
const red = await pngOf(plain(64, 64));

interface FileView {
  id: string;
  content_type: string;
  size: number;
  metadata: object;
  urls: { get: string; download: string };
}

/** Uploads a file as Replicate's client does. */
function upload({ api }: TestApi, data: Uint8Array, { headers = {}, metadata = '{}' } = {}): Promise<Response> {
  const form = new FormData();
  form.append('content', new Blob([new Uint8Array(data)], { type: 'application/octet-stream' }), 'buffer_1');
  form.append('metadata', new Blob([metadata], { type: 'application/json' }));
  return Promise.resolve(api.request(`${root}/files`, { method: 'POST', headers, body: form }));
}

async function uploaded(test: TestApi, headers: Record<string, string> = {}): Promise<FileView> {
  const response = await upload(test, red, { headers, metadata: '{"of":"red"}' });
  expect(response.status).toBe(201);
  return (await response.json()) as FileView;
}

function pathOf(url: string): string {
  return new URL(url).pathname;
}

const openKeyed = (options: TestApiOptions = {}) => openImageApi({ apiKeys, ...options });

describe('a file', () => {
  it('can be downloaded only with the key that uploaded it', async () => {
    const test = await openKeyed();
    const file = await uploaded(test, as('alice'));
    expect(file).toMatchObject({ content_type: 'image/png', size: red.length, metadata: { of: 'red' } });
    for (const [name, status] of [
      ['alice', 200],
      ['bob', 404],
    ] as const) {
      const get = await test.api.request(pathOf(file.urls.get), { headers: as(name) });
      const download = await test.api.request(pathOf(file.urls.download), { headers: as(name) });
      const list = (await (await test.api.request(`${root}/files`, { headers: as(name) })).json()) as {
        results: object[];
      };
      expect([name, get.status, download.status, list.results.length]).toEqual([
        name,
        status,
        status,
        name === 'alice' ? 1 : 0,
      ]);
    }
    for (const url of Object.values(file.urls)) expect((await test.api.request(pathOf(url))).status).toBe(401);
    const bytes = await test.api.request(pathOf(file.urls.download), {
      headers: { ...as('alice'), Range: 'bytes=1-3' },
    });
    expect([bytes.status, bytes.headers.get('content-type'), await bytes.text()]).toEqual([206, 'image/png', 'PNG']);
    expect(bytes.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('can be deleted only with the key that uploaded it', async () => {
    const test = await openKeyed();
    const { id } = await uploaded(test, as('alice'));
    const remove = (name: string) => test.api.request(`${root}/files/${id}`, { method: 'DELETE', headers: as(name) });
    expect([(await remove('bob')).status, (await remove('alice')).status, (await remove('alice')).status]).toEqual([
      404, 204, 404,
    ]);
  });

  it.each([
    ['content', Buffer.from('<script>alert(1)</script>'), '{}'],
    ['content', Buffer.alloc(0), '{}'],
    ['metadata', red, '[]'],
    ['metadata', red, 'x'],
    ['metadata', red, `{"a":"${'x'.repeat(17_000)}"}`],
  ])('is rejected for its %s, and nothing is stored', async (field, data, metadata) => {
    const test = await openImageApi();
    const before = await allKeys(test.store);
    const response = await upload(test, data, { metadata });
    expect([response.status, await response.json()]).toMatchObject([422, { invalid_fields: [{ field }] }]);
    expect(await allKeys(test.store)).toEqual(before);
  });

  it('is rejected with 413 above the size limit, and with 429 above the byte limit of its key', async () => {
    const small = await openKeyed({ config: { maxInputPixels: 64 } });
    expect((await upload(small, Buffer.concat([red, Buffer.alloc(70_000)]), { headers: as('alice') })).status).toBe(
      413,
    );
    const test = await openKeyed({ config: { ownerMaxBytes: red.length * 2 } });
    await uploaded(test, as('alice'));
    await uploaded(test, as('alice'));
    const refused = await upload(test, red, { headers: as('alice') });
    expect([refused.status, await refused.json()]).toMatchObject([429, { title: 'too_many_files' }]);
    await uploaded(test, as('bob'));
  });
});

function post({ api }: TestApi, body: object, name = 'alice') {
  return api.request('/v1/predict', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...as(name) },
    body: JSON.stringify({ prompt: 'a fox', ...body }),
  });
}

describe('as an input', () => {
  it('a file is read by its URL without a network fetch, whatever host name the URL has', async () => {
    const test = await openKeyed();
    const { id, urls } = await uploaded(test, as('alice'));
    for (const image of [urls.get, urls.download, `https://other.example/prefix${root}/files/${id}`]) {
      const response = await post(test, { image, mask: image });
      expect(response.status).toBe(202);
      const { request_id: request } = (await response.json()) as { request_id: string };
      expect(await readAttachment(test.store, request, 'image')).toBeDefined();
    }
  });

  it('a file of another key or a deleted file is rejected', async () => {
    const test = await openKeyed();
    const { id, urls } = await uploaded(test, as('alice'));
    const message = expect.stringMatching(/^image is ".*, which was not found, expected one of your files$/);
    const foreign = await post(test, { image: urls.get }, 'bob');
    expect([foreign.status, await foreign.json()]).toMatchObject([400, { error: { param: 'image', message } }]);
    await test.api.request(`${root}/files/${id}`, { method: 'DELETE', headers: as('alice') });
    const gone = await post(test, { image: urls.get });
    expect([gone.status, await gone.json()]).toMatchObject([400, { error: { message } }]);
  });
});
