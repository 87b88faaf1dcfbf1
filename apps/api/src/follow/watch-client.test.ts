/** A client that goes away, over real connections. */
import { type ClientRequest, request as httpRequest } from 'node:http';
import { readRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { generate, onlyId, path, stateOf } from '../testing/generate.ts';
import { listen } from '../testing/listen.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

const bodies = {
  'one answer': { prompt: 'x' },
  'a stream': { prompt: 'x', stream: true },
  'chunked frames': { prompt: 'x', stream: true, stream_format: 'chunked' },
};
const kinds = Object.keys(bodies) as (keyof typeof bodies)[];

interface Client {
  test: TestApi;
  /** The answer, or undefined when the client left before it came. */
  answer: Promise<Response | undefined>;
  leave: () => void;
  stop: () => Promise<void>;
}

async function connect(kind: keyof typeof bodies, headers: Record<string, string> = {}): Promise<Client> {
  const test = await openTestApi();
  await startWorker(test.store);
  const { server, url } = await listen(test);
  const abort = new AbortController();
  const answer = fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(bodies[kind]),
    signal: abort.signal,
  }).catch(() => undefined);
  return { test, answer, leave: () => abort.abort(), stop: () => server.stop() };
}

async function nothingIsLeft(test: TestApi): Promise<void> {
  await expect.poll(() => [test.hub.size, test.timers()]).toEqual([0, 0]);
}

describe.each(kinds)('a client of %s', (kind) => {
  it('that goes away while its request waits cancels it', async () => {
    const { test, leave } = await connect(kind);
    const id = await onlyId(test.store);
    await expect.poll(() => test.timers()).toBe(3);
    leave();
    await expect.poll(() => stateOf(test.store, id)).toBe('canceled');
    await nothingIsLeft(test);
  });

  it('that goes away while its request runs makes it leave at its next step', async () => {
    const { test, leave } = await connect(kind);
    const id = await onlyId(test.store);
    await expect.poll(() => test.timers()).toBe(3);
    await runNext(test.store);
    leave();
    await expect.poll(() => readRequest(test.store, id)).toMatchObject({ request: { isCanceling: true } });
    await nothingIsLeft(test);
  });

  it('that may come back, because it sent an Idempotency-Key, cancels nothing', async () => {
    const { test, leave } = await connect(kind, { 'Idempotency-Key': 'k-1' });
    const id = await onlyId(test.store);
    await expect.poll(() => test.timers()).toBe(3);
    leave();
    await nothingIsLeft(test);
    expect(await stateOf(test.store, id)).toBe('queued');
  });

  it('that has its answer cancels nothing when it goes', async () => {
    const { test, answer, leave } = await connect(kind);
    const id = await onlyId(test.store);
    const run = await runNext(test.store);
    await run.output(0, Buffer.from('picture'));
    await run.finish();
    await (await answer)!.text();
    leave();
    await nothingIsLeft(test);
    expect(await stateOf(test.store, id)).toBe('succeeded');
    expect(test.lines.join()).not.toContain('went away');
  });
});

it.each(kinds)('cancels what its client left before it was stored: %s', async (kind) => {
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
  await nothingIsLeft(test);
});

it('cancels what its client left while it was stored, over a connection', async () => {
  const clients: ClientRequest[] = [];
  const drawSeed = (): number => {
    clients.forEach((client) => client.destroy());
    return 1;
  };
  const test = await openTestApi({ drawSeed });
  const { url } = await listen(test);
  const body = JSON.stringify(bodies['a stream']);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  const upload = httpRequest(`${url}${path}`, { method: 'POST', headers });
  upload.on('error', () => {});
  clients.push(upload);
  upload.end(body);
  const id = await onlyId(test.store);
  await expect.poll(() => stateOf(test.store, id)).toBe('canceled');
  await nothingIsLeft(test);
});

it('sends the id before the first byte of a stream', async () => {
  const { test, answer, leave } = await connect('a stream');
  const { headers } = (await answer)!;
  expect(headers.get('x-request-id')).toBe(await onlyId(test.store));
  leave();
});

it('cancels nothing when it is the process that goes, with a reader that does not read', async () => {
  const { test, answer, stop } = await connect('a stream');
  const reader = readFrames((await answer)!);
  const id = await onlyId(test.store);
  await expect.poll(() => test.timers()).toBe(3);
  // The timers of the wait are the test's: it never ends, and the server closes the connection after its own time.
  await stop();
  await reader.rest().catch(() => {});
  expect(await stateOf(test.store, id)).toBe('queued');
  await nothingIsLeft(test);
});
