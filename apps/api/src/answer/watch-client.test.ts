/** Client disconnects, over real connections except where noted. */
import { type ClientRequest, request as httpRequest } from 'node:http';
import { readRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { generate, onlyId, generationsPath, stateOf } from '../testing/generate.ts';
import { listen } from '../testing/listen.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

const bodies = {
  'a single response': { prompt: 'x' },
  'a stream': { prompt: 'x', stream: true },
  'chunked frames': { prompt: 'x', stream: true, stream_format: 'chunked' },
};
const kinds = Object.keys(bodies) as (keyof typeof bodies)[];

interface Client {
  test: TestApi;
  /** The response; undefined if the client disconnected first. */
  answer: Promise<Response | undefined>;
  disconnect: () => void;
  stop: () => Promise<void>;
}

async function connect(kind: keyof typeof bodies, headers: Record<string, string> = {}): Promise<Client> {
  const test = await openTestApi();
  await startWorker(test.store);
  const { server, url } = await listen(test);
  const abort = new AbortController();
  const answer = fetch(`${url}${generationsPath}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(bodies[kind]),
    signal: abort.signal,
  }).catch(() => undefined);
  return { test, answer, disconnect: () => abort.abort(), stop: () => server.stop() };
}

async function expectCleanup(test: TestApi): Promise<void> {
  await expect.poll(() => [test.hub.size, test.timers()]).toEqual([0, 0]);
}

describe.each(kinds)('when the client of %s disconnects', (kind) => {
  it('cancels a queued request', async () => {
    const { test, disconnect } = await connect(kind);
    const id = await onlyId(test.store);
    await expect.poll(() => test.timers()).toBe(3);
    disconnect();
    await expect.poll(() => stateOf(test.store, id)).toBe('canceled');
    await expectCleanup(test);
  });

  it('sets a running request to canceling', async () => {
    const { test, disconnect } = await connect(kind);
    const id = await onlyId(test.store);
    await expect.poll(() => test.timers()).toBe(3);
    await runNext(test.store);
    disconnect();
    await expect.poll(() => readRequest(test.store, id)).toMatchObject({ request: { isCanceling: true } });
    await expectCleanup(test);
  });

  it('does not cancel a request that has an Idempotency-Key', async () => {
    const { test, disconnect } = await connect(kind, { 'Idempotency-Key': 'k-1' });
    const id = await onlyId(test.store);
    await expect.poll(() => test.timers()).toBe(3);
    disconnect();
    await expectCleanup(test);
    expect(await stateOf(test.store, id)).toBe('queued');
  });

  it('does not cancel a request that was answered', async () => {
    const { test, answer, disconnect } = await connect(kind);
    const id = await onlyId(test.store);
    const run = await runNext(test.store);
    await run.output(0, Buffer.from('image'));
    await run.finish();
    await (await answer)!.text();
    disconnect();
    await expectCleanup(test);
    expect(await stateOf(test.store, id)).toBe('succeeded');
    expect(test.lines.join()).not.toContain('client disconnected');
  });
});

// Without a connection: the signal of the call aborts.
it.each(kinds)('cancels a request whose client disconnects before the request is stored: %s', async (kind) => {
  const abort = new AbortController();
  const drawSeed = (): number => {
    abort.abort();
    return 1;
  };
  const test = await openTestApi({ drawSeed });
  const answer = await generate(test, bodies[kind], { signal: abort.signal });
  const id = await onlyId(test.store);
  await expect.poll(() => stateOf(test.store, id)).toBe('canceled');
  await answer.body?.cancel();
  await expectCleanup(test);
});

it('cancels a request whose client disconnects while the request is being stored', async () => {
  const clients: ClientRequest[] = [];
  const drawSeed = (): number => {
    clients.forEach((client) => client.destroy());
    return 1;
  };
  const test = await openTestApi({ drawSeed });
  const { url } = await listen(test);
  const body = JSON.stringify(bodies['a stream']);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  const upload = httpRequest(`${url}${generationsPath}`, { method: 'POST', headers });
  upload.on('error', () => {});
  clients.push(upload);
  upload.end(body);
  const id = await onlyId(test.store);
  await expect.poll(() => stateOf(test.store, id)).toBe('canceled');
  await expectCleanup(test);
});

it('sends X-Request-Id before the first byte of a stream', async () => {
  const { test, answer, disconnect } = await connect('a stream');
  const { headers } = (await answer)!;
  expect(headers.get('x-request-id')).toBe(await onlyId(test.store));
  disconnect();
});

it('does not cancel requests when the server stops, even if a client is not reading', async () => {
  const { test, answer, stop } = await connect('a stream');
  const reader = readFrames((await answer)!);
  const id = await onlyId(test.store);
  await expect.poll(() => test.timers()).toBe(3);
  // The test's fake timers never fire, so only the server's drain timeout closes the connection.
  await stop();
  await reader.rest().catch(() => {});
  expect(await stateOf(test.store, id)).toBe('queued');
  await expectCleanup(test);
});
