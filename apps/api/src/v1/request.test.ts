import { createRequestId, type Metadata } from '@darkroom/core';
import { publishModel } from '@darkroom/store';
import { allKeys, createCostMeter } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { imageStatusSchema } from '../openapi/api-schemas.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { cardWith, openTestApi, type TestApi } from '../testing/test-api.ts';

const neverWas = createRequestId({ model: 'tiny', owner: '', secret: 'not ours', nowMs: 1 });

async function poll(test: TestApi, id: string, query = '') {
  const response = await test.api.request(`/v1/predict/${id}${query}`);
  return { response, body: imageStatusSchema.parse(await response.json()) };
}

async function codeOf(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as { error: { code: string } };
  return [response.status, error.code];
}

async function succeed(test: TestApi, body: Record<string, unknown> = {}): Promise<string> {
  await startWorker(test.store);
  const id = await test.submit(body);
  const run = await runNext(test.store);
  for (let index = 0; index < Number(body['n'] ?? 1); index++) await run.output(index, Buffer.from(`image ${index}`));
  await run.finish();
  return id;
}

/** Deletes the keys of a request, as its expiry does. */
async function forget({ store }: TestApi, id: string): Promise<void> {
  for (const key of await allKeys(store)) if (key.includes(id)) await store.redis.del(key);
}

describe('GET /v1/predict/<id>', () => {
  it('reports the result of the safety checker per image in polls and events, and omits it without a checker', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const flagsOf = async (facts: readonly Metadata[]) => {
      const id = await test.submit({ n: facts.length });
      const run = await runNext(test.store);
      for (const [index, more] of facts.entries()) await run.output(index, Buffer.from('png'), 300, more);
      await run.finish();
      const { images } = (await poll(test, id)).body;
      const events = await (await test.api.request(`/v1/predict/${id}/events`)).text();
      const streamed = [...events.matchAll(/"nsfw_content_detected":(?<flag>true|false)/g)].map(
        ({ groups }) => groups!['flag'],
      );
      return { polled: images.map((image) => image.nsfw_content_detected), streamed };
    };
    const flags = await flagsOf([{ nsfw: true }, { nsfw: false }]);
    expect(flags.polled).toEqual([true, false]);
    // In the event of each image, and again in the terminal event.
    expect(flags.streamed).toEqual(['true', 'false', 'true', 'false']);
    expect(await flagsOf([{}])).toEqual({ polled: [undefined], streamed: [] });
  });

  it('shows the parameters of an upscaled image, which reproduce it as a body', async () => {
    const test = await openTestApi();
    await publishModel(test.store, cardWith({ upscales: [2] }));
    const { body } = await poll(test, await test.submit({ upscale: 2 }));
    expect(body.parameters).toMatchObject({ size: '128x128', upscale: 2 });
    await test.submit(body.parameters);
    expect((await poll(test, await test.submit())).body.parameters).not.toHaveProperty('upscale');
  });

  it('is 202 with Retry-After while queued and running', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    const queued = await poll(test, id);
    expect(queued.response.status).toBe(202);
    expect(queued.response.headers.get('retry-after')).toBe('1');
    expect(queued.body).toMatchObject({ status: 'queued', queue_position: 0, is_possible: false, started_at: null });
    await startWorker(test.store);
    const run = await runNext(test.store);
    await run.progress(1);
    const running = await poll(test, id);
    expect(running.response.status).toBe(202);
    expect(running.body).toMatchObject({ status: 'running', attempts: 1, step: 1, total_steps: 4, progress: 0.25 });
    expect(running.body).toMatchObject({ queue_position: null, is_possible: true, images: [], expires_at: null });
  });

  it('is 200 at the end, with images, times and parameters', async () => {
    const test = await openTestApi();
    const id = await succeed(test, { n: 2, negative_prompt: 'blur', preview: 'off', seed: 2 ** 32 - 1 });
    const { response, body } = await poll(test, id);
    expect(response.status).toBe(200);
    expect(body).toMatchObject({ status: 'succeeded', progress: 1, seeds: [2 ** 32 - 1, 0] });
    expect(body.images[1]).toMatchObject({ index: 1, url: `/v1/predict/${id}/images/1`, width: 128, bytes: 7 });
    expect(body.parameters).toMatchObject({ negative_prompt: 'blur', preview: 'off', num_inference_steps: 12 });
    expect(Date.parse(body.expires_at!) - Date.parse(body.ended_at!)).toBe(3_600_000);
    // Submitting the parameters reproduces the images.
    const again = await poll(test, await test.submit(body.parameters));
    expect(again.body.parameters).toEqual(body.parameters);
  });

  it('reports truncated prompt tokens once the first image is done', async () => {
    const test = await openTestApi();
    const id = await test.submit({ n: 2 });
    await startWorker(test.store);
    const run = await runNext(test.store);
    const unknown = { prompt_tokens_cut: null, negative_prompt_tokens_cut: null };
    expect((await poll(test, id)).body).toMatchObject(unknown);
    await run.output(0, Buffer.from('0'), undefined, { promptTokensCut: 12 });
    const cuts = { prompt_tokens_cut: 12, negative_prompt_tokens_cut: 0 };
    expect((await poll(test, id)).body).toMatchObject({ status: 'running', ...cuts });
    await run.output(1, Buffer.from('1'), undefined, { promptTokensCut: 12 });
    await run.finish();
    expect((await poll(test, id)).body).toMatchObject({ status: 'succeeded', ...cuts });
    const events = await (await test.api.request(`/v1/predict/${id}/events`)).text();
    expect(events).toMatch(/^event: succeeded\ndata: .*"prompt_tokens_cut":12,"negative_prompt_tokens_cut":0/m);
  });

  it('includes the images with images=inline', async () => {
    const test = await openTestApi();
    const id = await succeed(test, { n: 2 });
    const { body } = await poll(test, id, '?images=inline');
    const images = body.images.map(({ b64_json }) => Buffer.from(b64_json!, 'base64').toString());
    expect(images).toEqual(['image 0', 'image 1']);
    const wrong = await test.api.request(`/v1/predict/${id}?images=all`);
    expect(await wrong.json()).toMatchObject({ message: 'images is "all", expected url or inline' });
  });

  it('returns the error of a failed request', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit();
    const error = { code: 'engine_failed', message: 'The model could not make this image.' };
    await (await runNext(test.store)).finish({ state: 'failed', error });
    const { response, body } = await poll(test, id);
    expect(response.status).toBe(200);
    expect(body).toMatchObject({ status: 'failed', error });
  });

  it('distinguishes unknown (404) from expired (410) requests', async () => {
    const test = await openTestApi();
    expect(await codeOf(await test.api.request(`/v1/predict/${neverWas}`))).toEqual([404, 'request_not_found']);
    expect(await codeOf(await test.api.request('/v1/predict/nonsense'))).toEqual([404, 'request_not_found']);
    const id = await succeed(test);
    await forget(test, id);
    for (const path of ['', '/images/0', '/events'])
      expect(await codeOf(await test.api.request(`/v1/predict/${id}${path}`))).toEqual([410, 'request_gone']);
    const canceling = await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
    expect(await codeOf(canceling)).toEqual([410, 'request_gone']);
  });

  it('takes one round trip, and one more for images', async () => {
    const test = await openTestApi();
    const id = await succeed(test, { n: 2 });
    const costOf = await createCostMeter(test.store);
    await poll(test, id);
    expect((await costOf(() => poll(test, id))).sent).toEqual(['hgetall', 'get']);
    const withImages = await costOf(() => poll(test, id, '?images=inline'));
    expect(withImages.sent).toEqual(['hgetall', 'get', 'hgetall', 'hgetall']);
  });
});

describe('GET /v1/predict/<id>/images/<n>', () => {
  it('returns the bytes, and 304 for a matching ETag', async () => {
    const test = await openTestApi();
    const id = await succeed(test);
    const url = `/v1/predict/${id}/images/0`;
    const first = await test.api.request(url);
    expect(first.status).toBe(200);
    expect(await first.text()).toBe('image 0');
    expect(first.headers.get('content-type')).toBe('image/png');
    expect(first.headers.get('content-length')).toBe('7');
    expect(first.headers.get('cache-control')).toMatch(/^private, max-age=3(600|59\d)$/);
    const etag = first.headers.get('etag')!;
    const again = await test.api.request(url, { headers: { 'If-None-Match': `"other", W/${etag}` } });
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    const head = await test.api.request(url, { method: 'HEAD' });
    expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([200, '', '7']);
  });

  it('returns a finished image before the request ends, and errors for others', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit({ n: 2 });
    const images = `/v1/predict/${id}/images`;
    expect(await codeOf(await test.api.request(`${images}/0`))).toEqual([409, 'image_not_ready']);
    const run = await runNext(test.store);
    await run.output(0, Buffer.from('early'));
    const early = await test.api.request(`${images}/0`);
    expect([await early.text(), early.headers.get('cache-control')]).toEqual(['early', 'private, no-cache']);
    expect(await codeOf(await test.api.request(`${images}/1`))).toEqual([409, 'image_not_ready']);
    for (const index of ['2', '-1', '0x0', '99999999999'])
      expect(await codeOf(await test.api.request(`${images}/${index}`))).toEqual([404, 'image_not_found']);
    await run.finish({ state: 'canceled' });
    const never = await test.api.request(`${images}/1`);
    expect(await never.json()).toMatchObject({ message: `Request ${id} has ended (canceled) without image 1.` });
  });
});

async function remove(test: TestApi, id: string): Promise<Response> {
  return test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
}

describe('DELETE /v1/predict/<id>', () => {
  it('cancels a queued request once', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    const first = await remove(test, id);
    expect([first.status, await first.json()]).toEqual([200, { request_id: id, status: 'canceled' }]);
    expect(await codeOf(await remove(test, id))).toEqual([409, 'request_ended']);
    expect((await poll(test, id)).body.status).toBe('canceled');
    expect(await codeOf(await remove(test, neverWas))).toEqual([404, 'request_not_found']);
  });

  it('marks a running request as canceling, any number of times', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit();
    await runNext(test.store);
    for (let time = 0; time < 2; time++) {
      const response = await remove(test, id);
      expect([response.status, await response.json()]).toEqual([202, { request_id: id, status: 'canceling' }]);
    }
    expect((await poll(test, id)).body).toMatchObject({ status: 'running', is_canceling: true });
  });
});
