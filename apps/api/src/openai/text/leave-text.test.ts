/** A client of texts that goes away, over real connections, and a Redis that does. */
import { readRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { checkMs } from '../../follow/tail-events.ts';
import { runNext } from '../../testing/fake-worker.ts';
import { stateOf } from '../../testing/generate.ts';
import { openHangingRedis } from '../../testing/open-hanging-redis.ts';
import { listen } from '../../testing/listen.ts';
import { ask, end, openTextApi, write, writer } from '../../testing/open-text-api.ts';
import { readFrames } from '../../testing/sse-reader.ts';
import type { TestApi } from '../../testing/test-api.ts';

const path = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'something cold' }];

interface Client {
  test: TestApi;
  id: string;
  /** The answer, or undefined when the client left before it came. */
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

describe.each([false, true])('a client that goes away, streaming: %s', (stream) => {
  it('while its request waits cancels it', async () => {
    const { test, id, leave } = await connect({ stream });
    leave();
    await expect.poll(() => stateOf(test.store, id)).toBe('canceled');
    await nothingIsLeft(test);
  });

  it('while its request runs makes it leave at its next step', async () => {
    const { test, id, leave } = await connect({ stream });
    await runNext(test.store, writer.id);
    leave();
    await expect.poll(() => readRequest(test.store, id)).toMatchObject({ request: { isCanceling: true } });
    await nothingIsLeft(test);
  });

  it('and may come back, because it sent an Idempotency-Key, cancels nothing', async () => {
    const { test, id, leave } = await connect({ stream }, { 'Idempotency-Key': 'k-1' });
    leave();
    await nothingIsLeft(test);
    expect(await stateOf(test.store, id)).toBe('queued');
  });

  it('with its answer cancels nothing', async () => {
    const { test, id, answer, leave } = await connect({ stream });
    const run = await runNext(test.store, writer.id);
    await write(run, ['owl']);
    await end(run, 'owl');
    await run.finish();
    await (await answer)!.text();
    leave();
    await nothingIsLeft(test);
    expect(await stateOf(test.store, id)).toBe('succeeded');
    expect(test.lines.join()).not.toContain('went away');
  });
});

it('a client that goes away in the middle of a stream makes its request leave', async () => {
  const { test, id, answer, leave } = await connect({ stream: true });
  const run = await runNext(test.store, writer.id);
  await write(run, ['an ']);
  const reader = readFrames((await answer)!);
  expect((await reader.next())?.data).toContain('"role":"assistant"');
  leave();
  await expect.poll(() => readRequest(test.store, id)).toMatchObject({ request: { isCanceling: true } });
  await nothingIsLeft(test);
});

it('a stream that nobody ever reads leaves nothing behind', async () => {
  const test = await openTextApi();
  const asking = ask(test, path, { messages, stream: true });
  await expect.poll(() => test.timers()).toBe(3);
  const run = await runNext(test.store, writer.id);
  await write(run, ['an ']);
  const response = await asking;
  await response.body!.cancel();
  await nothingIsLeft(test);
});

it('a process that stops cancels nothing', async () => {
  const { test, id, answer, stop } = await connect({ stream: true });
  // The timers of the wait are the test's: it never ends, and the server closes the connection after its own time.
  await stop();
  await answer;
  expect(await stateOf(test.store, id)).toBe('queued');
  await nothingIsLeft(test);
});

it.each([false, true])(
  'goes on over a Redis that hangs, with nothing lost and nothing twice, streaming: %s',
  async (stream) => {
    const { store, goOn, runOut, hangAtOutput: wrapHub, hangs } = await openHangingRedis(300);
    const test = await openTextApi({ store, wrapHub, storeWaitMs: 300 });
    const answering = Promise.resolve(ask(test, path, { messages, stream }));
    await expect.poll(() => test.timers()).toBe(3);
    const run = await runNext(test.store, writer.id);
    await write(run, ['an ', 'owl']);
    const writing = end(run, 'an owl');
    await hangs;
    const body = answering.then((response) => response.text());
    let isOver = false;
    void body.finally(() => (isOver = true));
    // One try to read the whole has failed, and the next waits; a stream needs none.
    await runOut(expect.poll(() => test.timers()).toBe(stream ? 3 : 2));
    expect(isOver).toBe(false);
    goOn();
    await writing;
    await run.finish();
    test.tick(checkMs);
    const text = await body;
    const contents = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, content]) => content);
    expect(contents).toEqual(stream ? ['', 'an ', 'owl'] : ['an owl']);
  },
);
