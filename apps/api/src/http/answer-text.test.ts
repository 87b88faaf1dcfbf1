import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { openTestApi } from '../testing/test-api.ts';
import { takesGzip } from './answer-text.ts';

it('compresses /openapi.json only for clients that accept gzip', async () => {
  const { api } = await openTestApi();
  const plain = await api.request('/openapi.json');
  const text = Buffer.from(await plain.arrayBuffer());
  expect(Object.fromEntries(plain.headers)).toMatchObject({
    'content-length': String(text.length),
    'content-type': 'application/json',
    vary: expect.stringContaining('Accept-Encoding'),
  });
  expect(plain.headers.get('content-encoding')).toBeNull();
  const packed = await api.request('/openapi.json', { headers: { 'Accept-Encoding': 'gzip, deflate, br' } });
  const bytes = Buffer.from(await packed.arrayBuffer());
  expect(Object.fromEntries(packed.headers)).toMatchObject({
    'content-encoding': 'gzip',
    'content-length': String(bytes.length),
    vary: expect.stringContaining('Accept-Encoding'),
  });
  expect(bytes.length).toBeLessThan(text.length / 4);
  expect(gunzipSync(bytes)).toEqual(text);
});

it('gives each encoding its own ETag, and answers 304 to both', async () => {
  const { api } = await openTestApi();
  const tags: string[] = [];
  for (const encoding of ['identity', 'gzip']) {
    const etag = (await api.request('/openapi.json', { headers: { 'Accept-Encoding': encoding } })).headers.get(
      'etag',
    )!;
    const headers = { 'Accept-Encoding': encoding, 'If-None-Match': etag };
    expect((await api.request('/openapi.json', { headers })).status).toBe(304);
    tags.push(etag);
  }
  expect(new Set(tags).size).toBe(2);
});

it('compresses the scripts of /docs, but no images and no event streams', async () => {
  const { api } = await openTestApi();
  const headers = { 'Accept-Encoding': 'gzip' };
  const script = await api.request('/docs/swagger-ui-bundle.js', { headers });
  expect([script.status, script.headers.get('content-encoding')]).toEqual([200, 'gzip']);
  const icon = await api.request('/docs/favicon-32x32.png', { headers });
  expect([icon.status, icon.headers.get('content-encoding')]).toEqual([200, null]);
  const test = await openTestApi();
  const events = await test.api.request(`/v1/predict/${await test.submit()}/events`, { headers });
  expect(events.headers.get('content-encoding')).toBeNull();
  await events.body!.cancel();
});

it.each([
  [undefined, false],
  ['', false],
  ['br', false],
  ['gzip', true],
  ['GZIP', true],
  ['br;q=1, gzip;q=0.5', true],
  ['gzip;q=0', false],
  ['*', true],
  ['*;q=0.1, gzip; q=0', false],
])('parses Accept-Encoding: %s → gzip %s', (header, expected) => {
  expect(takesGzip(header)).toBe(expected);
});
