/** Text clients that disconnect, over real connections; and an unavailable Redis. */
import { readRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { checkMs } from '../../follow/tail-events.ts';
import { runNext } from '../../testing/fake-worker.ts';
import { stateOf } from '../../testing/generate.ts';
import { openHangingRedis } from '../../testing/open-hanging-redis.ts';
import { listen } from '../../testing/listen.ts';
import { postJson, end, openTextApi, writeTokens, writer } from '../../testing/open-text-api.ts';
import { readFrames } from '../../testing/sse-reader.ts';
import type { TestApi } from '../../testing/test-api.ts';

const path = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'something cold' }];

interface Client {
  test: TestApi;
  id: string;
  /** Resolves to undefined if the client disconnects before the answer. */
  answer: Promise<Response | undefined>;
  leave: () => void;
  stop: () => Promise<void>;
}

async function connect(body: object, headers: Record<string, string> = {}): Promise<Client> {
  const test = await openTextApi();
  const { server, url } = await listen(test);
  const abort = new AbortController();
  const answer = fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ messages, ...body }),
    signal: abort.signal,
  }).catch(() => undefined);
  await expect.poll(() => test.timers()).toBe(3);
  const [id] = await test.store.redis.zrange(test.store.keysOf(writer.id).waiting, 0, '-1');
  return { test, id: id!, answer, leave: () => abort.abort(), stop: () => server.stop() };
}

async function nothingIsLeft(test: TestApi): Promise<void> {
  await expect.poll(() => [test.hub.size, test.timers()]).toEqual([0, 0]);
}

describe.each([false, true])('a client that disconnects, streaming: %s', (stream) => {
  it('cancels its queued request', async () => {
    const { test, id, leave } = await connect({ stream });
    leave();
    await expect.poll(() => stateOf(test.store, id)).toBe('canceled');
    await nothingIsLeft(test);
  });

  it('cancels its running request at the next step', async () => {
    const { test, id, leave } = await connect({ stream });
    await runNext(test.store, writer.id);
    leave();
    await expect.poll(() => readRequest(test.store, id)).toMatchObject({ request: { isCanceling: true } });
    await nothingIsLeft(test);
  });

  it('does not cancel a request with an Idempotency-Key', async () => {
    const { test, id, leave } = await connect({ stream }, { 'Idempotency-Key': 'k-1' });
    leave();
    await nothingIsLeft(test);
    expect(await stateOf(test.store, id)).toBe('queued');
  });

  it('cancels nothing after it has its answer', async () => {
    const { test, id, answer, leave } = await connect({ stream });
    const run = await runNext(test.store, writer.id);
    await writeTokens(run, ['owl']);
    await end(run, 'owl');
    await run.finish();
    await (await answer)!.text();
    leave();
    await nothingIsLeft(test);
    expect(await stateOf(test.store, id)).toBe('succeeded');
    expect(test.lines.join()).not.toContain('client disconnected');
  });
});

it('a client that disconnects in the middle of a stream cancels its request', async () => {
  const { test, id, answer, leave } = await connect({ stream: true });
  const run = await runNext(test.store, writer.id);
  await writeTokens(run, ['an ']);
  const reader = readFrames((await answer)!);
  expect((await reader.next())?.data).toContain('"role":"assistant"');
  leave();
  await expect.poll(() => readRequest(test.store, id)).toMatchObject({ request: { isCanceling: true } });
  await nothingIsLeft(test);
});

it('a stream that is never read releases its timers and subscriptions', async () => {
  const test = await openTextApi();
  const asking = postJson(test, path, { messages, stream: true });
  await expect.poll(() => test.timers()).toBe(3);
  const run = await runNext(test.store, writer.id);
  await writeTokens(run, ['an ']);
  const response = await asking;
  await response.body!.cancel();
  await nothingIsLeft(test);
});

it('a shutdown of the API cancels no request', async () => {
  const { test, id, answer, stop } = await connect({ stream: true });
  // The test's timers never fire, so the wait does not end by itself; the server closes the connection.
  await stop();
  await answer;
  expect(await stateOf(test.store, id)).toBe('queued');
  await nothingIsLeft(test);
});

it.each([false, true])('resumes after Redis hangs, without lost or repeated text, streaming: %s', async (stream) => {
  const { store, goOn, runOut, hangAtOutput: wrapHub, hangs } = await openHangingRedis(300);
  const test = await openTextApi({ store, wrapHub, storeWaitMs: 300 });
  const answering = Promise.resolve(postJson(test, path, { messages, stream }));
  await expect.poll(() => test.timers()).toBe(3);
  const run = await runNext(test.store, writer.id);
  await writeTokens(run, ['an ', 'owl']);
  const writing = end(run, 'an owl');
  await hangs;
  const body = answering.then((response) => response.text());
  let isOver = false;
  void body.finally(() => (isOver = true));
  // Without streaming, the first read of the full text has failed and the retry waits. Streams do not read it.
  await runOut(expect.poll(() => test.timers()).toBe(stream ? 3 : 2));
  expect(isOver).toBe(false);
  goOn();
  await writing;
  await run.finish();
  test.tick(checkMs);
  const text = await body;
  const contents = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, content]) => content);
  expect(contents).toEqual(stream ? ['', 'an ', 'owl'] : ['an owl']);
});
