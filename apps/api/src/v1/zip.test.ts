import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createRequestId } from '@darkroom/core';
import { createCostMeter } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { listen } from '../testing/listen.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

const readZip = `
import base64, json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as file:
  assert file.testzip() is None
  print(json.dumps([[each.filename, each.compress_type, file.read(each).decode()] for each in file.infolist()]))`;

/** Returns the name, compression and content of each entry of a ZIP file, as Python's reader sees them. */
async function entriesOf(data: Uint8Array): Promise<[string, number, string][]> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-zip-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'a.zip'), data);
  const { stdout } = await promisify(execFile)('python3', ['-c', readZip, join(folder, 'a.zip')]);
  return JSON.parse(stdout) as [string, number, string][];
}

/** Submits a request and finishes some of its images. */
async function draw(test: TestApi, images: readonly string[], { n = images.length } = {}): Promise<string> {
  const id = await test.submit({ n });
  const run = await runNext(test.store);
  for (const [index, image] of images.entries()) await run.output(index, Buffer.from(image));
  if (n === images.length) await run.finish();
  return id;
}

async function openDrawing(): Promise<TestApi> {
  const test = await openTestApi();
  await startWorker(test.store);
  return test;
}

async function errorOf({ api }: TestApi, ids: string, init?: RequestInit) {
  const response = await api.request(`/v1/predict/zip?ids=${ids}`, init);
  return {
    status: response.status,
    ...((await response.json()) as { error: { code: string; message: string } }).error,
  };
}

function headersOf(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
}

const unknown = createRequestId({ model: 'tiny', owner: '', secret: 'not ours', nowMs: 1 });

it('GET /v1/predict/zip streams the finished images of several requests as a ZIP file, each once', async () => {
  const test = await openDrawing();
  const [first, second] = [await draw(test, ['a', 'bb']), await draw(test, ['ccc'], { n: 2 })];
  const { url } = await listen(test);
  const path = `${url}/v1/predict/zip?ids=${first},${second},${first}`;
  const response = await fetch(path);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/zip']);
  expect(response.headers.get('content-disposition')).toBe('attachment; filename="darkroom-images.zip"');
  const data = new Uint8Array(await response.arrayBuffer());
  expect(response.headers.get('content-length')).toBe(String(data.length));
  expect(await entriesOf(data)).toEqual([
    [`${first}-0.png`, 0, 'a'],
    [`${first}-1.png`, 0, 'bb'],
    [`${second}-0.png`, 0, 'ccc'],
  ]);
  const head = await fetch(path, { method: 'HEAD' });
  expect([head.status, head.headers.get('content-length')]).toEqual([200, String(data.length)]);
});

it('a ZIP file is read from the store image by image, as the client reads it', async () => {
  const test = await openDrawing();
  const id = await draw(
    test,
    Array.from({ length: 8 }, () => 'x'.repeat(300_000)),
  );
  const costOf = await createCostMeter(test.store);
  const { body } = await test.api.request(`/v1/predict/zip?ids=${id}`);
  const reader = body!.getReader();
  const { sent } = await costOf(() => reader.read());
  expect(sent.filter((name) => name === 'hgetall').length).toBeLessThanOrEqual(2);
  const rest = await costOf(async () => {
    while (!(await reader.read()).done);
  });
  expect(rest.sent.length).toBeGreaterThan(4);
});

it('a download breaks off if an image is gone, and the server says so only in its log', async () => {
  const test = await openDrawing();
  const id = await draw(test, ['a', 'b'.repeat(1_000_000)]);
  await test.store.redis.del(test.store.keysOf('tiny').output(id, 1));
  const { url } = await listen(test);
  const response = await fetch(`${url}/v1/predict/zip?ids=${id}`);
  await expect(response.text()).rejects.toThrow('terminated');
  await expect.poll(() => test.lines.join('')).toContain('download of images broke off');
});

it('refuses ids that are missing, malformed, unknown, too many or of another key, and requests without images', async () => {
  const test = await openDrawing();
  const none = await test.submit();
  const many = Array.from({ length: 101 }, (_id, at) => none.slice(0, -3) + String(at).padStart(3, '0')).join(',');
  for (const ids of ['', 'x', `${none},`, many])
    expect(await errorOf(test, ids)).toMatchObject({ status: 400, param: 'ids' });
  expect((await test.api.request('/v1/predict/zip')).status).toBe(400);
  expect(await errorOf(test, none)).toMatchObject({ status: 404, code: 'image_not_found' });
  const missing = await errorOf(test, unknown);
  expect(missing).toMatchObject({ status: 404, code: 'request_not_found' });
  expect(missing.message).toContain(unknown);
  const drawn = await draw(test, ['a']);
  await test.store.redis.del(test.store.keysOf('tiny').request(drawn));
  expect(await errorOf(test, drawn)).toMatchObject({ status: 410, code: 'request_gone' });
});

it('leaves out requests that are not stored any more', async () => {
  const test = await openDrawing();
  const [gone, drawn] = [await draw(test, ['a']), await draw(test, ['b'])];
  await test.store.redis.del(test.store.keysOf('tiny').request(gone));
  const response = await test.api.request(`/v1/predict/zip?ids=${gone},${unknown},${drawn}`);
  expect(await entriesOf(new Uint8Array(await response.arrayBuffer()))).toEqual([[`${drawn}-0.png`, 0, 'b']]);
});

it('a ZIP file has no images of other keys', async () => {
  const unlimited = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
  const keys = ['ann-key-0123456789', 'bob-key-0123456789'] as const;
  const test = await openTestApi({ apiKeys: new Map(keys.map((key) => [hashKey(key), { name: key, ...unlimited }])) });
  await startWorker(test.store);
  const init = { method: 'POST', headers: headersOf(keys[0]), body: JSON.stringify({ prompt: 'a fox' }) };
  const { request_id: id } = (await (await test.api.request('/v1/predict', init)).json()) as { request_id: string };
  const run = await runNext(test.store);
  await run.output(0, Buffer.from('image'));
  await run.finish();
  expect(await errorOf(test, id, { headers: headersOf(keys[1]) })).toMatchObject({ status: 404 });
  expect(await errorOf(test, id)).toMatchObject({ status: 401 });
  const path = `/v1/predict/zip?ids=${id}`;
  expect((await test.api.request(path, { headers: headersOf(keys[0]) })).status).toBe(200);
});
