/** Tests the life cycle of upstream requests, and the detection of dead servers and hung calls. */
import { describe, expect, it } from 'vitest';
import { upstreamApis, line, open, upstreamInput } from '../testing/upstream-bench.ts';

describe.each(upstreamApis)('a text of %s', (api) => {
  it('is aborted at the server when it is canceled, and frees its slot', async () => {
    const { log, toy, executor } = await open(api);
    await executor.start();
    executor.submit([
      { id: 'a', input: upstreamInput('', { params: { prompt: 'wish' }, n: 3 }) },
      { id: 'b', input: upstreamInput('next') },
    ]);
    await log.firstProgress('a');
    expect(log.of('delta', 'b')).toEqual([]);
    executor.cancel('a');
    expect(await log.end('b')).toMatchObject({ type: 'request-done' });
    await expect.poll(() => toy.openAnswers).toBe(0);
    expect(toy.maxOpenAnswers).toBe(2);
  });

  it('emits no step events', async () => {
    const { log, executor } = await open(api);
    await executor.start();
    executor.submit([{ id: 'a', input: upstreamInput('wish', { n: 2 }) }]);
    await log.end('a');
    expect(new Set(log.events.map(({ type }) => type))).toEqual(
      new Set(['delta', 'progress', 'output', 'request-done']),
    );
  });

  it('waits for a slot when the server is at capacity', async () => {
    const { log, toy, executor } = await open(api);
    await executor.start();
    const ids = ['a', 'b', 'c'];
    executor.submit(ids.map((id) => ({ id, input: upstreamInput('wish', { n: 2 }) })));
    expect(await executor.checkHealth()).toMatchObject({ slots: 2, waitingRequests: 2 });
    await Promise.all(ids.map((id) => log.end(id)));
    expect(toy.maxOpenAnswers).toBe(2);
    expect(log.of('request-done').map(({ requestId }) => requestId)).toEqual(ids);
  });

  it('is lost with all others when its server is unreachable, and start() retries', async () => {
    const { log, toy, executor, waits } = await open(api);
    await executor.start();
    const long = upstreamInput('', { params: { prompt: 'wish' } });
    executor.submit(['a', 'b', 'c'].map((id) => ({ id, input: long })));
    await Promise.all(['a', 'b'].map((id) => log.firstProgress(id)));
    await toy.stop();
    const lost = await log.next(({ type }) => type === 'engine-lost');
    expect(lost).toMatchObject({
      requestIds: ['a', 'b', 'c'],
      message: expect.stringContaining('ECONNREFUSED') as string,
    });
    expect(log.events.at(-1)).toBe(lost);
    const starting = executor.start();
    await expect.poll(() => waits.length).toBeGreaterThan(0);
    await toy.start();
    await starting;
    executor.submit([{ id: 'a', input: upstreamInput('wish') }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });
});

it('detects an unresponsive server while idle', async () => {
  const { toy, executor, log } = await open('llama.cpp', { checkEveryMs: 5, timeoutMs: 50 });
  await executor.start();
  expect(await executor.checkHealth()).toMatchObject({ isHealthy: true });
  // Simulates a frozen server: it accepts requests and never responds.
  toy.fault = () => true;
  expect(await log.next(({ type }) => type === 'engine-lost')).toMatchObject({ requestIds: [] });
});

it('tolerates a single failed health check', async () => {
  const { toy, executor, log } = await open('llama.cpp', { checkEveryMs: 5 });
  await executor.start();
  executor.submit([{ id: 'a', input: upstreamInput('', { params: { prompt: 'wish' } }) }]);
  await log.firstProgress('a');
  let checks = 0;
  toy.fault = (_request, response) => checks++ % 2 === 0 && Boolean(response.writeHead(502).end());
  await expect.poll(() => checks).toBeGreaterThan(4);
  expect(log.of('engine-lost')).toEqual([]);
});

it.each([408, 425, 429])('treats status %s as healthy', async (status) => {
  const { toy, executor, log } = await open('llama.cpp', { checkEveryMs: 5 });
  await executor.start();
  let checks = 0;
  toy.fault = (_request, response) => ++checks > 0 && Boolean(response.writeHead(status).end());
  await expect.poll(() => checks).toBeGreaterThan(4);
  expect(await executor.checkHealth()).toMatchObject({ isHealthy: true });
  expect(log.events).toEqual([]);
});

it('loses one request if the health check after its failure fails once, and all if it fails twice', async () => {
  const { toy, executor, log } = await open('openai');
  await executor.start();
  executor.submit([{ id: 'a', input: upstreamInput('', { params: { prompt: 'wish' } }) }]);
  await log.firstProgress('a');
  let failures = 1;
  toy.fault = (_request, response, body) =>
    (body !== undefined || failures-- > 0) && Boolean(response.writeHead(502).end());
  executor.submit([{ id: 'b', input: upstreamInput('a wish') }]);
  expect(await log.end('b')).toMatchObject({ type: 'request-lost' });
  expect(log.of('engine-lost')).toEqual([]);
  failures = 2;
  executor.submit([{ id: 'c', input: upstreamInput('a wish') }]);
  const lost = await log.next(({ type }) => type === 'engine-lost');
  expect(lost).toMatchObject({ requestIds: ['a', 'c'] });
});

it.each(upstreamApis)('loses only the silent text of %s', async (api) => {
  const { toy, executor, log, url } = await open(api, { timeoutMs: 500 });
  await executor.start();
  let isClosed = false;
  toy.fault = (_request, response, body) => {
    if ((body as { prompt?: string } | undefined)?.prompt !== 'silence') return false;
    response.once('close', () => (isClosed = true));
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    return response.write(line('one'));
  };
  executor.submit([
    { id: 'silent', input: upstreamInput('silence', { n: 2 }) },
    { id: 'a', input: upstreamInput('', { params: { prompt: 'wish' } }) },
  ]);
  expect(await log.end('silent')).toMatchObject({
    type: 'request-lost',
    message: `${url} sent nothing for an output within 0.5 s`,
  });
  await expect.poll(() => isClosed).toBe(true);
  await log.firstProgress('a');
  expect(log.of('engine-lost')).toEqual([]);
  expect(log.of('request-lost')).toHaveLength(1);
});

it("ends soon after a finish_reason of OpenAI's even if the stream stays open", async () => {
  const { toy, executor, log } = await open('openai');
  await executor.start();
  toy.fault = (_request, response, body) => {
    if (body === undefined) return false;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(line('one'));
    return response.write(`data: ${JSON.stringify({ choices: [{ text: ' two', finish_reason: 'length' }] })}\n\n`);
  };
  executor.submit([{ id: 'a', input: upstreamInput('a wish') }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  expect(log.outputs('a').get(0)?.toString()).toBe('one two');
  expect(log.of('output')[0]!.output.facts).toMatchObject({ finish_reason: 'length', completion_tokens: 2 });
});

it.each([
  [1, 1],
  [undefined, 2],
  [8, 2],
])('uses the slots of llama.cpp up to maxSlots (%s)', async (maxSlots, taken) => {
  const { toy, executor, log } = await open('llama.cpp', { maxSlots });
  await executor.start();
  expect(executor.maxSlots).toBe(taken);
  executor.submit([{ id: 'a', input: upstreamInput('a wish', { n: 3 }) }]);
  await log.end('a');
  expect(toy.maxOpenAnswers).toBe(taken);
});

it('retries on a new connection if the kept-alive ones are closed', async () => {
  const { toy, executor, log } = await open('openai');
  await executor.start();
  const served = new Set<object>();
  toy.fault = ({ socket }, _response, body) => {
    if (body === undefined) return false;
    if (served.has(socket)) return Boolean(socket.destroy());
    served.add(socket);
    return false;
  };
  for (const ids of [['a', 'b'], ['c', 'd'], ['e']]) {
    executor.submit(ids.map((id) => ({ id, input: upstreamInput('a wish') })));
    for (const id of ids) expect(await log.end(id)).toMatchObject({ type: 'request-done' });
  }
  expect(served.size).toBe(5);
});
