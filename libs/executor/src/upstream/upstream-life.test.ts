/** When requests begin and end, and how it is found out whether a server and a call are at it. */
import { describe, expect, it } from 'vitest';
import { apis, line, open, text } from '../testing/upstream-bench.ts';

describe.each(apis)('a text of %s', (api) => {
  it('that is canceled stops at the server, and frees its place', async () => {
    const { log, toy, executor } = await open(api);
    await executor.start();
    executor.submit([
      { id: 'a', input: text('', { asked: { prompt: 'wish' }, n: 3 }) },
      { id: 'b', input: text('next') },
    ]);
    await log.firstWord('a');
    expect(log.of('delta', 'b')).toEqual([]);
    executor.cancel('a');
    expect(await log.end('b')).toMatchObject({ type: 'request-done' });
    await expect.poll(() => toy.openAnswers).toBe(0);
    expect(toy.mostAnswers).toBe(2);
  });

  it('has no steps to say anything of', async () => {
    const { log, executor } = await open(api);
    await executor.start();
    executor.submit([{ id: 'a', input: text('wish', { n: 2 }) }]);
    await log.end('a');
    expect(new Set(log.events.map(({ type }) => type))).toEqual(
      new Set(['delta', 'progress', 'output', 'request-done']),
    );
  });

  it('waits for a place where as many are served as the server takes', async () => {
    const { log, toy, executor } = await open(api);
    await executor.start();
    const ids = ['a', 'b', 'c'];
    executor.submit(ids.map((id) => ({ id, input: text('wish', { n: 2 }) })));
    expect(await executor.checkHealth()).toMatchObject({ slots: 2, waitingRequests: 2 });
    await Promise.all(ids.map((id) => log.end(id)));
    expect(toy.mostAnswers).toBe(2);
    expect(log.of('request-done').map(({ requestId }) => requestId)).toEqual(ids);
  });

  it('is lost with all others when its server is gone, which is waited for', async () => {
    const { log, toy, executor, waits } = await open(api);
    await executor.start();
    const long = text('', { asked: { prompt: 'wish' } });
    executor.submit(['a', 'b', 'c'].map((id) => ({ id, input: long })));
    await Promise.all(['a', 'b'].map((id) => log.firstWord(id)));
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
    executor.submit([{ id: 'a', input: text('wish') }]);
    expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  });
});

it('notices a server that says nothing any more, also where nobody asks it for something', async () => {
  const { toy, executor, log } = await open('llama.cpp', { checkEveryMs: 5, patienceMs: 50 });
  await executor.start();
  expect(await executor.checkHealth()).toMatchObject({ isHealthy: true });
  // Frozen: it takes what comes, and never answers.
  toy.fault = () => true;
  expect(await log.next(({ type }) => type === 'engine-lost')).toMatchObject({ requestIds: [] });
});

it('bears one look that fails, with what is under way', async () => {
  const { toy, executor, log } = await open('llama.cpp', { checkEveryMs: 5 });
  await executor.start();
  executor.submit([{ id: 'a', input: text('', { asked: { prompt: 'wish' } }) }]);
  await log.firstWord('a');
  let looks = 0;
  toy.fault = (_request, response) => looks++ % 2 === 0 && Boolean(response.writeHead(502).end());
  await expect.poll(() => looks).toBeGreaterThan(4);
  expect(log.of('engine-lost')).toEqual([]);
});

it.each([408, 425, 429])('takes %s for an answer of a server that lives', async (status) => {
  const { toy, executor, log } = await open('llama.cpp', { checkEveryMs: 5 });
  await executor.start();
  let looks = 0;
  toy.fault = (_request, response) => ++looks > 0 && Boolean(response.writeHead(status).end());
  await expect.poll(() => looks).toBeGreaterThan(4);
  expect(await executor.checkHealth()).toMatchObject({ isHealthy: true });
  expect(log.events).toEqual([]);
});

it('loses one request that breaks off where the look after it fails once, and all where it fails again', async () => {
  const { toy, executor, log } = await open('openai');
  await executor.start();
  executor.submit([{ id: 'a', input: text('', { asked: { prompt: 'wish' } }) }]);
  await log.firstWord('a');
  let failures = 1;
  toy.fault = (_request, response, body) =>
    (body !== undefined || failures-- > 0) && Boolean(response.writeHead(502).end());
  executor.submit([{ id: 'b', input: text('a wish') }]);
  expect(await log.end('b')).toMatchObject({ type: 'request-lost' });
  expect(log.of('engine-lost')).toEqual([]);
  failures = 2;
  executor.submit([{ id: 'c', input: text('a wish') }]);
  const lost = await log.next(({ type }) => type === 'engine-lost');
  expect(lost).toMatchObject({ requestIds: ['a', 'c'] });
});

it.each(apis)('loses a text of %s that falls silent, and no other', async (api) => {
  const { toy, executor, log, url } = await open(api, { patienceMs: 500 });
  await executor.start();
  let isClosed = false;
  toy.fault = (_request, response, body) => {
    if ((body as { prompt?: string } | undefined)?.prompt !== 'silence') return false;
    response.once('close', () => (isClosed = true));
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    return response.write(line('one'));
  };
  executor.submit([
    { id: 'silent', input: text('silence', { n: 2 }) },
    { id: 'a', input: text('', { asked: { prompt: 'wish' } }) },
  ]);
  expect(await log.end('silent')).toMatchObject({
    type: 'request-lost',
    message: `${url} has said nothing of an output for 0.5 s`,
  });
  await expect.poll(() => isClosed).toBe(true);
  await log.firstWord('a');
  expect(log.of('engine-lost')).toEqual([]);
  expect(log.of('request-lost')).toHaveLength(1);
});

it("waits only a little for what may follow a finish_reason of OpenAI's", async () => {
  const { toy, executor, log } = await open('openai');
  await executor.start();
  toy.fault = (_request, response, body) => {
    if (body === undefined) return false;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(line('one'));
    return response.write(`data: ${JSON.stringify({ choices: [{ text: ' two', finish_reason: 'length' }] })}\n\n`);
  };
  executor.submit([{ id: 'a', input: text('a wish') }]);
  expect(await log.end('a')).toMatchObject({ type: 'request-done' });
  expect(log.outputs('a').get(0)?.toString()).toBe('one two');
  expect(log.of('output')[0]!.output.facts).toMatchObject({ finish_reason: 'length', completion_tokens: 2 });
});

it.each([
  [1, 1],
  [undefined, 2],
  [8, 2],
])('takes of the slots that llama.cpp says at most as many as it may (%s)', async (maxSlots, taken) => {
  const { toy, executor, log } = await open('llama.cpp', { maxSlots });
  await executor.start();
  expect(executor.maxSlots).toBe(taken);
  executor.submit([{ id: 'a', input: text('a wish', { n: 3 }) }]);
  await log.end('a');
  expect(toy.mostAnswers).toBe(taken);
});

it('asks again, over a new connection, where those that it had kept open are closed', async () => {
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
    executor.submit(ids.map((id) => ({ id, input: text('a wish') })));
    for (const id of ids) expect(await log.end(id)).toMatchObject({ type: 'request-done' });
  }
  expect(served.size).toBe(5);
});
