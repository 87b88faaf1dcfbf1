/** Tests faulty servers: errors are attributed correctly, memory is bounded, and the API key never leaks. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { EventOf } from '../executor-event.ts';
import type { ToyLlamaCpp } from '../testing/toy-llama-cpp.ts';
import type { ToyFault } from '../testing/toy-server.ts';
import { upstreamApis, executorOf, key, line, open, streams, upstreamInput, toys } from '../testing/upstream-bench.ts';

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const refusal =
  (message: string, status = 400): ToyFault =>
  (_request, response, body) =>
    body !== undefined &&
    Boolean(response.writeHead(status).end(JSON.stringify({ error: { message, type: 'invalid_request_error' } })));

describe.each(upstreamApis)('start() with %s', (api) => {
  const expected = { 'llama.cpp': "llama.cpp's server", openai: 'OpenAI-compatible' }[api];
  const other = { 'llama.cpp': 'openai', openai: 'llama.cpp' } as const;

  it('retries while the server is unreachable, and reports its URL', async () => {
    const toy = new toys[api]();
    const url = await toy.start();
    await toy.stop();
    const { executor, waits } = executorOf(api, url);
    const starting = executor.start();
    await expect.poll(() => waits.length).toBeGreaterThan(2);
    expect(waits[0]).toBe(`${url} cannot be reached, or broke the connection (ECONNREFUSED)`);
    await toy.start();
    expect(await starting).toMatchObject({ id: 'toy_writer', kind: 'text' });
    await toy.stop();
  });

  it('rejects when the executor is shut down while it retries', async () => {
    const { executor, waits } = executorOf(api, 'http://127.0.0.1:9');
    const starting = executor.start();
    await expect.poll(() => waits.length).toBeGreaterThan(0);
    await executor.shutdown();
    await expect(starting).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching('was stopped') as string,
    });
  });

  it.each<[string, (url: string) => ToyFault, string]>([
    [
      'refuses the key',
      () => (_request, response) => Boolean(response.writeHead(401).end(key)),
      'expected it to accept the key of UPSTREAM_KEY',
    ],
    [
      'redirects',
      () => (_request, response) => Boolean(response.writeHead(302, { Location: 'http://127.0.0.1:9/' }).end()),
      'with 302, expected 200',
    ],
    ['answers with a page', () => (_request, response) => Boolean(response.end('<html>')), 'not JSON'],
    ['answers with other JSON', () => (_request, response) => Boolean(response.end('{"a":1}')), 'expected'],
    [
      'answers without end',
      () => (_request, response) => {
        const more = (): void => void (response.destroyed || response.write('x'.repeat(65_536), more));
        more();
        return true;
      },
      'more than 4194304 bytes',
    ],
  ])('reports a server that %s', async (_name, faultOf, message) => {
    const { toy, url, executor, waited } = await open(api);
    toy.fault = faultOf(url);
    const starting = executor.start();
    starting.catch(() => {});
    const error = await Promise.race([starting.then(String, (failed: Error) => failed.message), waited]);
    expect(error).toContain(url);
    expect(error).toContain(message);
    expect(error).not.toContain(key);
  });

  it('reports the expected protocol for a server with another one', async () => {
    const { url } = await open(other[api]);
    const { executor } = executorOf(api, url);
    const error = await executor.start().then(String, (failed: Error) => failed.message);
    expect(error).toContain(url);
    expect(error).toMatch(/with 404, expected 200: it is another kind of server/);
    const empty = await listen((_request, response) => response.end('{}'));
    await expect(executorOf(api, empty).executor.start()).rejects.toThrow(expected);
  });
});

it('retries while llama.cpp loads its model', async () => {
  const { toy, executor, waits, url } = await open('llama.cpp');
  (toy as ToyLlamaCpp).isLoading = true;
  const starting = executor.start();
  await expect.poll(() => waits.at(-1)).toBe(`${url} answers GET /health with 503: Loading model`);
  (toy as ToyLlamaCpp).isLoading = false;
  expect(await starting).toMatchObject({ maxModelTokens: 512, hasChatTemplate: true });
  expect(executor.maxSlots).toBe(2);
});

it('lists the available models if MODEL_ID is unknown', async () => {
  const { executor, url } = await open('openai', { model: 'toy-reader' });
  await expect(executor.start()).rejects.toThrow(
    `${url} has no model toy-reader: expected MODEL_ID to be one of toy_writer, gpt-image-toy`,
  );
});

describe.each(upstreamApis)('a text of %s', (api) => {
  /** Runs a request against the fault, and then one without it. */
  async function runWith(fault: ToyFault, input = upstreamInput('a wish')) {
    const { toy, executor, log, url } = await open(api);
    await executor.start();
    toy.fault = fault;
    executor.submit([{ id: 'a', input }]);
    const end = await log.end('a');
    toy.fault = () => false;
    executor.submit([{ id: 'b', input: upstreamInput('another') }]);
    expect(await log.end('b')).toMatchObject({ type: 'request-done' });
    expect(JSON.stringify(log.events)).not.toContain(key);
    return { end, url, log };
  }
  it.each<[string, ToyFault, string]>([
    ['half a line', streams(line('one'), 'data: {"cont'), 'sent half a line, expected its end'],
    ['10 MB in one line', streams(line('one'), `data: ${'x'.repeat(10_000_000)}`), 'a line of more than 1048576 bytes'],
    [
      'wrong UTF-8 in the middle of a character',
      streams(line('one'), 'data: {"content":"', Uint8Array.of(0xc3), '"}\n\n'),
      'bytes that are not UTF-8',
    ],
    ['half a character', streams(line('one'), line('\ud83e')), 'sent half a character'],
    ['no JSON', streams(line('one'), 'data: {one: 1}\n\n'), 'that is not JSON'],
    ['no last chunk', streams(line('one')), 'without its last chunk'],
    [
      'nothing more',
      (_request, response, body) => {
        if (body === undefined) return false;
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write(line('one'), () => response.socket!.resetAndDestroy());
        return true;
      },
      'cannot be reached, or broke the connection',
    ],
    [
      'too many requests',
      (_request, response, body) =>
        body !== undefined && Boolean(response.writeHead(429, { 'Retry-After': '0' }).end('{"error":"busy"}')),
      'with 429: busy',
    ],
    [
      'no free slot',
      (_request, response, body) =>
        body !== undefined && Boolean(response.writeHead(503, { 'Retry-After': '0' }).end('{"error":"full"}')),
      'with 503: full',
    ],
    [
      'no end',
      streams(...Array.from({ length: 8 }, () => line('x'.repeat(10_000)))),
      'sent a text of more than 65856 characters',
    ],
    [
      'an internal error',
      streams('data: {"error":{"code":500,"message":"out of memory","type":"server_error"}}\n\n'),
      'broke off: out of memory',
    ],
  ])('is lost on a response with %s, and the next succeeds', async (_name, fault, message) => {
    const { end, url } = await runWith(fault);
    expect(end).toMatchObject({ type: 'request-lost', requestId: 'a' });
    expect((end as EventOf<'request-lost'>).message).toContain(url);
    expect((end as EventOf<'request-lost'>).message).toContain(message);
  });

  it.each<[string, ToyFault, string]>([
    [
      'a key refused',
      (_request, response, body) => body !== undefined && Boolean(response.writeHead(401).end(key)),
      'with 401: expected it to accept the key of UPSTREAM_KEY',
    ],
    [
      'a redirect',
      (_request, response, body) =>
        body !== undefined && Boolean(response.writeHead(307, { Location: '/elsewhere' }).end()),
      'with 307, expected 200',
    ],
  ])(
    'loses the engine on %s, without counting an attempt, until the server is fixed',
    async (_name, fault, message) => {
      const { toy, executor, log, waits, url } = await open(api);
      await executor.start();
      toy.fault = fault;
      executor.submit(['a', 'b', 'c'].map((id) => ({ id, input: upstreamInput('a wish') })));
      const lost = await log.next(({ type }) => type === 'engine-lost');
      expect(lost).toMatchObject({ requestIds: ['a', 'b', 'c'], countsNoAttempt: true });
      expect(log.events).toEqual([lost]);
      expect(waits).toEqual([(lost as EventOf<'engine-lost'>).message]);
      expect(waits[0]).toContain(url);
      expect(waits[0]).toContain(message);
      expect(waits[0]).not.toContain(key);
      expect(await executor.checkHealth()).toMatchObject({ isHealthy: false, waitingRequests: 0 });
      toy.fault = () => false;
      await executor.start();
      executor.submit([{ id: 'a', input: upstreamInput('a wish') }]);
      expect(await log.end('a')).toMatchObject({ type: 'request-done' });
    },
  );

  it.each([400, 403, 404, 422])('fails with the reason on status %s', async (status) => {
    const { end } = await runWith(refusal('It takes no such thing.', status));
    expect(end).toMatchObject({ type: 'request-failed', code: 'invalid_request', message: 'It takes no such thing.' });
  });

  it.each([
    [400, 'Bad Request', 'The server that runs this model refused the request.'],
    [413, '<html>too large</html>', 'The server that runs this model refused the request.'],
    [422, '{"detail":[{"loc":["body"],"msg":"Input should be valid"}]}', 'Input should be valid'],
  ])('fails on status %s with body %s', async (status, body, message) => {
    const { end } = await runWith(
      (_request, response, requestBody) => requestBody !== undefined && Boolean(response.writeHead(status).end(body)),
    );
    expect(end).toMatchObject({ type: 'request-failed', code: 'invalid_request', message });
  });

  it.each([
    ['a long reason', `no ${'x'.repeat(1000)}`, `no ${'x'.repeat(296)}…`],
    [
      'a reason with the prompt in it',
      'cannot read "my secret wish, which nobody knows" at all',
      'The server that runs this model refused the request.',
    ],
    [
      'a reason with a part of the prompt',
      'bad: wish, which nobody knows',
      'The server that runs this model refused the request.',
    ],
    ['a reason with the key', `wrong key ${key}`, 'The server that runs this model refused the request.'],
  ])('redacts %s', async (_name, reason, shown) => {
    const { end } = await runWith(refusal(reason), upstreamInput('my secret wish, which nobody knows'));
    expect(end).toMatchObject({ type: 'request-failed', message: shown });
  });

  it('reports log probabilities and usage', async () => {
    const { log, toy, executor } = await open(api);
    await executor.start();
    const params = { prompt: 'wish', max_tokens: 2, logprobs: true, top_logprobs: 1, temperature: 0.5, stop: 'x' };
    executor.submit([{ id: 'a', input: upstreamInput('', { params, maxTokens: 2, logprobs: 1, n: 2 }), indexes: [1] }]);
    await log.end('a');
    const [delta] = log.of('delta');
    const logprob = { token: delta!.text, logprob: -0.5, bytes: [...Buffer.from(delta!.text)] };
    expect(JSON.parse(String(delta!.facts!['logprobs']))).toEqual({ ...logprob, top: [logprob] });
    expect(log.of('progress').map(({ done, total }) => [done, total])).toEqual([
      [1, 2],
      [2, 2],
    ]);
    expect(log.of('output')[0]!.output).toMatchObject({
      contentType: 'text/plain; charset=utf-8',
      facts: { finish_reason: 'length', prompt_tokens: 7, completion_tokens: 2, cached_tokens: 3, calls: 2 },
    });
    expect(toy.bodies).toMatchObject([{ prompt: 'wish', seed: 2, temperature: 0.5, stream: true }]);
    expect([...toy.keys]).toEqual([`Bearer ${key}`]);
  });
});

it('bounds the memory of an endless line', async () => {
  const { toy, executor, log } = await open('openai');
  await executor.start();
  let written = 0;
  toy.fault = (_request, response, body) => {
    if (body === undefined) return false;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const more = (): void => {
      written += 65_536;
      if (!response.destroyed) response.write('x'.repeat(65_536), more);
    };
    more();
    return true;
  };
  executor.submit([{ id: 'a', input: upstreamInput('a wish') }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-lost' });
  // The limit leaves room for the sockets' buffers.
  expect(written).toBeLessThan(16 * 1024 * 1024);
});
