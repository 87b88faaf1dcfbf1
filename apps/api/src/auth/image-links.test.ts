/** Tests signed links, which open one image without a key on a server with keys. */
import { createCostMeter, openTestStore } from '@darkroom/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { createTestApi, openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';
import { anonymousKey, type ApiKeys, hashKey } from './api-keys.ts';

const apiKeys: ApiKeys = new Map(['ann', 'bob'].map((name) => [hashKey(name), { ...anonymousKey, name }]));
const asAnn = { Authorization: 'Bearer ann', 'Content-Type': 'application/json' };
const asBob = { Authorization: 'Bearer bob' };

interface Linked {
  test: TestApi;
  id: string;
  /** URLs of both images, from the owner's `GET /v1/predict/{id}`. */
  links: readonly string[];
}

async function submitAs(test: TestApi, headers: Record<string, string>): Promise<string> {
  const body = JSON.stringify({ prompt: 'a fox', n: 2 });
  const response = await test.api.request('/v1/predict', { method: 'POST', body, headers });
  expect(response.status).toBe(202);
  return ((await response.json()) as { request_id: string }).request_id;
}

async function linksOf(test: TestApi, id: string, headers: Record<string, string> = asAnn): Promise<string[]> {
  const response = await test.api.request(`/v1/predict/${id}`, { headers });
  return ((await response.json()) as { images: { url: string }[] }).images.map(({ url }) => url);
}

/** Opens an API and completes a request of Ann with two images. */
async function openLinked(options: TestApiOptions = {}): Promise<Linked> {
  const test = await openTestApi({ apiKeys, ...options });
  const id = await submitAs(test, asAnn);
  await startWorker(test.store);
  const run = await runNext(test.store);
  for (const index of [0, 1]) await run.output(index, Buffer.from(`image ${index}`));
  await run.finish();
  return { test, id, links: await linksOf(test, id) };
}

async function answerTo(test: TestApi, url: string, headers: Record<string, string> = {}): Promise<[number, string]> {
  const response = await test.api.request(url, { headers });
  const text = await response.text();
  return [response.status, response.ok ? text : errorSchema.parse(JSON.parse(text)).error.code];
}

const signed = /^\/v1\/predict\/tiny-\w{26}\/images\/\d\?expires=\d{10}&signature=[\w-]{43}$/;

describe('a link', () => {
  it('opens its image without a key, on any replica, any number of times', async () => {
    const { test, links } = await openLinked();
    expect(links).toEqual([expect.stringMatching(signed), expect.stringMatching(signed)]);
    for (const one of [test, test, test.replica()])
      expect(await Promise.all(links.map((link) => answerTo(one, link)))).toEqual([
        [200, 'image 0'],
        [200, 'image 1'],
      ]);
    const head = await test.api.request(links[0]!, { method: 'HEAD' });
    expect([head.status, head.headers.get('cache-control')]).toEqual([200, expect.stringMatching(/^private/)]);
  });

  it('is the same in every answer after the request ended, and works until the results expire', async () => {
    let nowMs = Date.now();
    const { test, id, links } = await openLinked({ clock: { now: () => nowMs } });
    nowMs += 600_000;
    expect(await linksOf(test, id)).toEqual(links);
    const view = await test.api.request(`/v1/predict/${id}`, { headers: asAnn });
    const { expires_at } = (await view.json()) as { expires_at: string };
    const expires = Number(new URL(links[0]!, 'http://localhost').searchParams.get('expires')) * 1000;
    expect(expires - Date.parse(expires_at)).toBeGreaterThanOrEqual(0);
    expect(expires - Date.parse(expires_at)).toBeLessThan(1000);
    nowMs = expires;
    expect(await answerTo(test, links[0]!)).toEqual([410, 'link_expired']);
  });

  it('opens no other path or method', async () => {
    const { test, id, links } = await openLinked();
    const { search } = new URL(links[0]!, 'http://localhost');
    const bobsId = await submitAs(test, { ...asBob, 'Content-Type': 'application/json' });
    for (const path of [
      `/v1/predict/${id}/images/1`,
      `/v1/predict/${id}/images/00`,
      `/v1/predict/${bobsId}/images/0`,
      '/v1/predict/tiny-00000000000000000000000000/images/0',
    ])
      expect([path, await answerTo(test, path + search)]).toEqual([path, [403, 'wrong_link']]);
    for (const path of [`/v1/predict/${id}`, `/v1/predict/${id}/events`, '/v1/models', '/metrics'])
      expect([path, await answerTo(test, path + search)]).toEqual([path, [401, 'missing_api_key']]);
    const canceling = await test.api.request(links[0]!, { method: 'DELETE' });
    expect(canceling.status).toBe(401);
  });

  it('returns the same 403 if tampered with, whether the image exists or not', async () => {
    const { test, links } = await openLinked();
    const [link] = links as [string];
    for (const changed of [
      link.replace(/expires=\d/, 'expires=9'),
      link.replace(/expires=\d+&/, ''),
      link.replace(/signature=.*/, 'signature='),
      link.slice(0, -4),
      `${link}x`,
      link.replace(/tiny-\w{26}/, 'tiny-00000000000000000000000000'),
      link.replace(/tiny-\w{26}/, 'no-id'),
    ])
      expect([changed, await answerTo(test, changed)]).toEqual([changed, [403, 'wrong_link']]);
    expect(await answerTo(test, link.replace(/&signature=.*/, ''))).toEqual([401, 'missing_api_key']);
    const elsewhere = createTestApi({ store: openTestStore(), apiKeys });
    expect(await answerTo(elsewhere, link)).toEqual([403, 'wrong_link']);
  });

  it('does not appear in the log', async () => {
    const { test, links } = await openLinked();
    await answerTo(test, links[0]!);
    await answerTo(test, `${links[0]!}x`);
    expect(test.lines.join('')).toContain('/images/0');
    expect(test.lines.join('')).not.toContain('signature');
  });

  it('needs no extra round trip for the secret', async () => {
    const { test, id, links } = await openLinked();
    const costOf = await createCostMeter(test.store);
    expect((await costOf(() => linksOf(test, id))).sent).toEqual(['hgetall', 'get']);
    const withKey = await costOf(() => answerTo(test, `/v1/predict/${id}/images/0`, asAnn));
    expect((await costOf(() => answerTo(test, links[0]!))).sent).toEqual(withKey.sent);
    expect((await costOf(() => answerTo(test, `${links[0]!}x`))).sent).toEqual([]);
  });
});

describe('with a key', () => {
  it('a valid link needs no key; an expired one falls back to the key', async () => {
    let nowMs = Date.now();
    const { test, links } = await openLinked({ clock: { now: () => nowMs } });
    expect(await answerTo(test, links[0]!, asBob)).toEqual([200, 'image 0']);
    nowMs += 30 * 86_400_000;
    expect(await answerTo(test, links[0]!, asAnn)).toEqual([200, 'image 0']);
    expect(await answerTo(test, links[0]!, asBob)).toEqual([404, 'request_not_found']);
    expect(await answerTo(test, links[0]!, { Authorization: 'Bearer eve' })).toEqual([401, 'invalid_api_key']);
  });

  it('a path without a signature needs the key of the owner', async () => {
    const { test, id } = await openLinked();
    expect(await answerTo(test, `/v1/predict/${id}/images/0`, asAnn)).toEqual([200, 'image 0']);
    expect(await answerTo(test, `/v1/predict/${id}/images/0`, asBob)).toEqual([404, 'request_not_found']);
    expect(await answerTo(test, `/v1/predict/${id}/images/0`)).toEqual([401, 'missing_api_key']);
  });
});

it('events contain links that work at once, and the same links when read again', async () => {
  const test = await openTestApi({ apiKeys });
  const id = await submitAs(test, asAnn);
  await startWorker(test.store);
  const run = await runNext(test.store);
  await run.output(0, Buffer.from('image 0'));
  const urlsOf = async (read: 'first' | 'all'): Promise<string[]> => {
    const reader = readFrames(await test.api.request(`/v1/predict/${id}/events`, { headers: asAnn }));
    const found: string[] = [];
    for (let frame = await reader.next(); frame !== undefined; frame = await reader.next()) {
      for (const [, url] of (frame.data ?? '').matchAll(/"url":"([^"]*)"/g)) found.push(url!);
      if (read === 'first' && found.length > 0) break;
    }
    await reader.cancel();
    return found;
  };
  const [early] = (await urlsOf('first')) as [string];
  expect(await answerTo(test, early)).toEqual([200, 'image 0']);
  expect((await linksOf(test, id)).length).toBe(1);
  await run.output(1, Buffer.from('image 1'));
  await run.finish();
  const urls = await urlsOf('all');
  expect(urls).toHaveLength(4);
  expect(urls[0]).toBe(early);
  expect(await Promise.all(urls.map((url) => answerTo(test, url)))).toEqual(
    ['image 0', 'image 1', 'image 0', 'image 1'].map((image) => [200, image]),
  );
  expect(await urlsOf('all')).toEqual(urls);
});

it('a new secret in Redis invalidates all links', async () => {
  const store = openTestStore();
  const { test, links } = await openLinked({ store });
  expect(await answerTo(test, links[0]!)).toEqual([200, 'image 0']);
  await store.redis.set(`${store.prefix}:{_webhooks}:link-secret`, 'another-secret');
  const otherApi = createTestApi({ store: openTestStore({ prefix: store.prefix }), apiKeys });
  expect(await answerTo(otherApi, links[0]!)).toEqual([403, 'wrong_link']);
  expect(await answerTo(otherApi, (await linksOf(otherApi, links[0]!.split('/')[3]!))[0]!)).toEqual([200, 'image 0']);
  // An API that is running already reads the secret again once it is half a minute old.
  expect(await answerTo(test, links[0]!)).toEqual([200, 'image 0']);
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000);
  onTestFinished(() => clock.mockRestore());
  await expect.poll(() => answerTo(test, links[0]!)).toEqual([403, 'wrong_link']);
});

it('a server without keys returns plain paths', async () => {
  const test = await openTestApi();
  const id = await test.submit();
  await startWorker(test.store);
  const run = await runNext(test.store);
  await run.output(0, Buffer.from('image 0'));
  await run.finish();
  expect(await linksOf(test, id, {})).toEqual([`/v1/predict/${id}/images/0`]);
  expect(await answerTo(test, `/v1/predict/${id}/images/0?expires=1&signature=x`)).toEqual([200, 'image 0']);
});
