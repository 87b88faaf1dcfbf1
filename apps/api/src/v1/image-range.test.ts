/** Range requests for images, as sent by browsers, curl -C - and download managers. */
import { errorSchema } from '../http/error-response.ts';
import { expect, it } from 'vitest';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi } from '../testing/test-api.ts';

async function openImage() {
  const test = await openTestApi();
  const id = await test.submit();
  await startWorker(test.store);
  const run = await runNext(test.store);
  await run.output(0, Buffer.from('0123456789'));
  await run.finish();
  return (headers: Record<string, string>) => test.api.request(`/v1/predict/${id}/images/0`, { headers });
}

it('answers 206 with the requested bytes and the length of the file', async () => {
  const fetchWith = await openImage();
  const full = await fetchWith({});
  expect([full.status, full.headers.get('accept-ranges'), await full.text()]).toEqual([200, 'bytes', '0123456789']);
  const part = await fetchWith({ Range: 'bytes=2-5' });
  expect([part.status, await part.text()]).toEqual([206, '2345']);
  expect(Object.fromEntries(part.headers)).toMatchObject({
    'content-range': 'bytes 2-5/10',
    'content-length': '4',
    'content-type': 'image/png',
    etag: full.headers.get('etag'),
  });
});

it('answers 416 with the length for a range outside of the file', async () => {
  const response = await (await openImage())({ Range: 'bytes=10-' });
  expect([response.status, response.headers.get('content-range')]).toEqual([416, 'bytes */10']);
  expect(errorSchema.parse(await response.json()).error).toMatchObject({
    code: 'range_not_satisfiable',
    param: 'Range',
  });
});

it('If-Range returns a part of the same file, and the full file if it changed', async () => {
  const fetchWith = await openImage();
  const etag = (await fetchWith({})).headers.get('etag')!;
  expect((await fetchWith({ Range: 'bytes=2-5', 'If-Range': etag })).status).toBe(206);
  for (const other of ['"another"', `W/${etag}`, 'Sat, 21 Nov 2026 01:40:46 GMT']) {
    const response = await fetchWith({ Range: 'bytes=2-5', 'If-Range': other });
    expect([other, response.status, await response.text()]).toEqual([other, 200, '0123456789']);
  }
});

it('If-None-Match takes precedence over Range', async () => {
  const fetchWith = await openImage();
  const etag = (await fetchWith({})).headers.get('etag')!;
  expect((await fetchWith({ Range: 'bytes=2-5', 'If-None-Match': etag })).status).toBe(304);
});
