/** `Prefer: wait` on a submit and `?wait=` on a poll: answers at the end of the request or after the timeout. */
import { describe, expect, it } from 'vitest';
import { acceptedSchema, requestSchema } from '../openapi/api-schemas.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import { checkMs } from './tail-events.ts';

async function submitAndWait(test: TestApi, prefer: string, more: object = {}): Promise<Response> {
  const headers = { 'Content-Type': 'application/json', Prefer: prefer };
  return test.api.request('/v1/predict', {
    method: 'POST',
    headers,
    body: JSON.stringify({ prompt: 'a fox', ...more }),
  });
}

async function finishNext(test: TestApi): Promise<void> {
  const running = await runNext(test.store);
  await running.output(0, Buffer.from('png'));
  await running.finish();
}

describe('a submit that waits', () => {
  it('answers with the ended request as soon as it ends', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const answering = submitAndWait(test, 'respond-async, wait=10');
    await expect.poll(() => test.hub.size).toBe(1);
    await finishNext(test);
    const response = await answering;
    expect([response.status, response.headers.get('preference-applied')]).toEqual([200, 'wait=10']);
    const view = requestSchema.parse(await response.json());
    expect(view).toMatchObject({ status: 'succeeded', images: [{ index: 0 }] });
    expect(response.headers.get('location')).toBe(view.urls.self);
    expect([test.hub.size, test.timers()]).toEqual([0, 0]);
  });

  it('includes the images with "output": "inline"', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const answering = submitAndWait(test, 'wait', { output: 'inline' });
    await expect.poll(() => test.hub.size).toBe(1);
    await finishNext(test);
    const view = requestSchema.parse(await (await answering).json());
    expect(view).toMatchObject({ images: [{ index: 0, b64_json: Buffer.from('png').toString('base64') }] });
    const wrong = await submitAndWait(test, 'wait', { output: 'file' });
    expect(await wrong.json()).toMatchObject({ message: 'output is "file", expected "url" or "inline"' });
  });

  it('answers with the open request after the timeout, at most 60 s', async () => {
    const test = await openTestApi();
    const answering = submitAndWait(test, 'wait=3600');
    await expect.poll(() => test.timers()).toBe(2);
    test.tick(60_000);
    const response = await answering;
    expect([response.status, response.headers.get('preference-applied')]).toEqual([202, 'wait=60']);
    expect(requestSchema.parse(await response.json()).status).toBe('queued');
    expect([test.hub.size, test.timers()]).toEqual([0, 0]);
  });

  it('answers at once without Prefer, and with an unknown preference (RFC 7240)', async () => {
    const test = await openTestApi();
    const unknown = ['return=minimal', 'wait=long', 'wait=-1', 'wait=', 'waiting=5', ';', 'wait="'];
    for (const prefer of unknown) {
      const response = await submitAndWait(test, prefer);
      expect([prefer, response.status, response.headers.get('preference-applied')]).toEqual([prefer, 202, null]);
      acceptedSchema.parse(await response.json());
    }
    expect(await test.store.redis.zcard(test.store.keysOf('tiny').waiting)).toBe(unknown.length);
  });

  it('answers with the open request when the server stops', async () => {
    const test = await openTestApi();
    const answering = submitAndWait(test, 'wait=60');
    await expect.poll(() => test.hub.size).toBe(1);
    test.draining.abort();
    expect((await answering).status).toBe(202);
  });
});

describe('a poll that waits', () => {
  it('answers as soon as the request ends, on any replica', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit();
    const replica = test.replica();
    const answering = replica.api.request(`/v1/predict/${id}?wait=60`);
    await expect.poll(() => replica.hub.size).toBe(1);
    await finishNext(test);
    expect((await answering).status).toBe(200);
    expect((await replica.api.request(`/v1/predict/${id}?wait=60`)).status).toBe(200);
  });

  it('notices the end if its pub/sub message was lost', async () => {
    const test = await openTestApi({
      wrapHub: (hub) => ({
        ...hub,
        subscribe: (id) => hub.subscribe(id, () => {}),
        onReconnect: (listener) => hub.onReconnect(listener),
      }),
    });
    const id = await test.submit();
    const answering = test.api.request(`/v1/predict/${id}?wait=60`);
    await expect.poll(() => test.timers()).toBe(2);
    await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
    test.tick(checkMs);
    expect((await answering).status).toBe(200);
  });

  it('does not wait for an unknown request, and rejects invalid times', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    expect((await test.api.request('/v1/predict/tiny-00000000000000000000000000?wait=60')).status).toBe(404);
    for (const wait of ['61', '-1', 'x', '', '1e1']) {
      const response = await test.api.request(`/v1/predict/${id}?wait=${wait}`);
      expect([wait, response.status]).toEqual([wait, 400]);
    }
    expect((await test.api.request(`/v1/predict/${id}?wait=0`)).status).toBe(202);
    expect([test.hub.size, test.timers()]).toEqual([0, 0]);
  });

  it('stops waiting when the client disconnects', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    const gone = new AbortController();
    const answering = test.api.request(`/v1/predict/${id}?wait=60`, { signal: gone.signal });
    await expect.poll(() => test.hub.size).toBe(1);
    gone.abort();
    await Promise.resolve(answering).catch(() => {});
    await expect.poll(() => [test.hub.size, test.timers()]).toEqual([0, 0]);
  });
});
