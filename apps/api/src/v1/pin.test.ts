import { createRequestId } from '@darkroom/core';
import { expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { pinSchema } from '../openapi/api-schemas.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi } from '../testing/test-api.ts';

const dayMs = 24 * 3_600_000;
const key = 'ann-key-0123456789';
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };

/** Opens a server with one key and an ended request of it. */
async function openWithImage() {
  const limits = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
  const test = await openTestApi({ apiKeys: new Map([[hashKey(key), { name: 'ann', ...limits }]]) });
  await startWorker(test.store);
  const call = (method: string, path: string, body?: object) =>
    test.api.request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const { request_id: id } = (await (await call('POST', '/v1/predict', { prompt: 'a fox' })).json()) as {
    request_id: string;
  };
  const run = await runNext(test.store);
  const open = await call('PUT', `/v1/predict/${id}/pin`);
  await run.output(0, Buffer.from('image'));
  await run.finish();
  return { test, call, open, path: `/v1/predict/${id}` };
}

async function errorOf(response: Response) {
  return { status: response.status, ...((await response.json()) as { error: { code: string } }).error };
}

it('PUT pin retains a request and the links to its images for 30 days after its end; DELETE undoes it', async () => {
  const { test, call, path } = await openWithImage();
  const pinned = pinSchema.parse(await (await call('PUT', `${path}/pin`)).json());
  const view = async () =>
    (await (await call('GET', path)).json()) as {
      is_pinned: boolean;
      expires_at: string;
      ended_at: string;
      images: [{ url: string }];
    };
  const { ended_at, expires_at, is_pinned, images } = await view();
  expect([pinned.is_pinned, is_pinned, pinned.expires_at]).toEqual([true, true, expires_at]);
  expect(Date.parse(expires_at) - Date.parse(ended_at)).toBe(30 * dayMs);
  const laterBy = async (days: number) => {
    const nowMs = Date.parse(ended_at) + days * dayMs;
    return (await test.replica({ clock: { now: () => nowMs } }).api.request(images[0].url)).status;
  };
  expect([await laterBy(29), await laterBy(31)]).toEqual([200, 410]);
  const unpinned = pinSchema.parse(await (await call('DELETE', `${path}/pin`)).json());
  expect([unpinned.is_pinned, (await view()).is_pinned, (await view()).expires_at]).toEqual([
    false,
    false,
    unpinned.expires_at,
  ]);
  expect(Date.parse(unpinned.expires_at) - Date.parse(ended_at)).toBe(3_600_000);
});

it('PUT pin refuses an open request with 409, and an unknown one with 404', async () => {
  const { test, call, open } = await openWithImage();
  expect(await errorOf(open)).toMatchObject({ status: 409, code: 'request_not_ended' });
  const unknown = createRequestId({ model: 'tiny', owner: 'ann', secret: 'not ours', nowMs: 1 });
  expect(await errorOf(await call('PUT', `/v1/predict/${unknown}/pin`))).toMatchObject({ status: 404 });
  expect(await errorOf(await call('DELETE', '/v1/predict/x/pin'))).toMatchObject({ status: 404 });
  expect((await test.api.request(`/v1/predict/${unknown}/pin`, { method: 'PUT' })).status).toBe(401);
});
