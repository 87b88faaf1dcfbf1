/** Responses over HTTP, with a worker that does what the test says. */
import { cancelRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { drainGraceMs } from '../follow/follow-stored.ts';
import { runNext } from '../testing/fake-worker.ts';
import { stateOf } from '../testing/generate.ts';
import { type Body, dataOf, finish, input, openResponse, path, viewOf } from '../testing/open-response.ts';
import { ask, openTextApi, write, writer } from '../testing/open-text-api.ts';
import { type Frame, readFrames, type SseReader } from '../testing/sse-reader.ts';

const done: Frame = { data: '[DONE]' };

/** A stream whose request runs. */
async function stream(body: Body = {}) {
  const test = await openTextApi();
  const response = await ask(test, path, { input, stream: true, ...body });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  const id = response.headers.get('x-request-id')!;
  return { test, id, reader: readFrames(response), run: await runNext(test.store, writer.id) };
}

async function typesOf(reader: SseReader): Promise<[string | undefined, unknown][]> {
  const frames = await reader.rest();
  expect(frames.pop()).toEqual(done);
  return frames.map((frame) => {
    expect(frame.event).toBe(dataOf(frame)['type']);
    return [frame.event, dataOf(frame)['sequence_number']];
  });
}

describe('one answer', () => {
  it('is the whole response', async () => {
    const test = await openTextApi();
    const metadata = { purpose: 'a test' };
    const asking = ask(test, path, {
      input,
      instructions: 'Be short.',
      max_output_tokens: 9,
      temperature: 1,
      metadata,
    });
    await expect.poll(() => test.hub.size).toBe(1);
    const run = await runNext(test.store, writer.id);
    await write(run, ['a penguin', ' on ice']);
    await finish(run, 'a penguin on ice');
    const response = await asking;
    const id = response.headers.get('x-request-id')!;
    const view = await viewOf(response);
    expect(view).toMatchObject({
      id: `resp_${id}`,
      status: 'completed',
      background: false,
      error: null,
      instructions: 'Be short.',
      max_output_tokens: 9,
      metadata,
      model: 'writer',
      output: [{ id: `msg_${id}`, role: 'assistant', status: 'completed', content: [{ text: 'a penguin on ice' }] }],
      temperature: 1,
      usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
    });
    expect(await viewOf(await test.api.request(`${path}/${view.id}`))).toEqual(view);
    const { parameters } = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: Body };
    expect(parameters).toMatchObject({ max_tokens: 9, temperature: 1, model: 'writer' });
  });

  it('is incomplete when it was cut', async () => {
    const { test, url, run } = await openResponse();
    await write(run, ['a penguin']);
    await finish(run, 'a penguin', { finish_reason: 'length' });
    expect(await viewOf(await test.api.request(url))).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete' }],
    });
  });

  it('of a request that fails is an error that no SDK asks for again', async () => {
    const test = await openTextApi();
    const asking = ask(test, path, { input });
    await expect.poll(() => test.hub.size).toBe(1);
    const run = await runNext(test.store, writer.id);
    await run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'Nothing came of it.' } });
    const response = await asking;
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([422, 'false']);
    expect(await response.json()).toMatchObject({ error: { code: 'engine_failed' } });
  });

  it('is canceled by a client that goes away', async () => {
    const test = await openTextApi();
    const abort = new AbortController();
    const asking = ask(test, path, { input }, { signal: abort.signal });
    await expect.poll(() => test.hub.size).toBe(1);
    const [id] = await test.store.redis.zrange(test.store.keysOf(writer.id).waiting, '0', '-1');
    abort.abort();
    await asking;
    await expect.poll(() => stateOf(test.store, id!)).toBe('canceled');
  });
});

describe('one in the background', () => {
  it('answers at once, and says where it is', async () => {
    const { test, view, url, run } = await openResponse();
    expect(view).toMatchObject({ status: 'queued', background: true, output: [], usage: null });
    expect(await viewOf(await test.api.request(url))).toEqual({ ...view, status: 'in_progress' });
    await write(run, ['a pen', 'guin']);
    expect(await viewOf(await test.api.request(url))).toEqual({
      ...view,
      status: 'in_progress',
      output: [
        {
          id: view.id.replace('resp_', 'msg_'),
          type: 'message',
          status: 'in_progress',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'a penguin', annotations: [], logprobs: [] }],
        },
      ],
    });
  });

  it('a stream that is left is not canceled, and goes on at another replica', async () => {
    const { test, id, reader, run } = await stream({ background: true });
    await write(run, ['a pen']);
    const seen: Frame[] = [];
    for (let frame = await reader.next(); dataOf(frame)['sequence_number'] !== 9; frame = await reader.next())
      seen.push(frame!);
    await reader.cancel();
    expect([await stateOf(test.store, id), test.hub.size]).toEqual(['running', 0]);
    const other = test.replica();
    const resumed = await other.api.request(`${path}/resp_${id}?stream=true&starting_after=9`);
    const rest = readFrames(resumed);
    await write(run, ['guin'], { offset: 5 });
    expect(dataOf(await rest.next())).toMatchObject({ delta: 'guin', sequence_number: 13 });
    await finish(run, 'a penguin');
    expect(await typesOf(rest)).toEqual([
      ['response.output_text.done', 14],
      ['response.content_part.done', 15],
      ['response.output_item.done', 16],
      ['response.completed', 17],
    ]);
  });

  it('the same key is the same response, wherever it stands', async () => {
    const test = await openTextApi();
    const headers = { 'idempotency-key': 'penguin-1' };
    const send = async () => viewOf(await ask(test, path, { input, background: true }, { headers }));
    const first = await send();
    const run = await runNext(test.store, writer.id);
    await write(run, ['a penguin']);
    await finish(run, 'a penguin');
    expect(await send()).toMatchObject({ id: first.id, status: 'completed' });
  });

  it('the same key with another body is a conflict, whatever differs', async () => {
    const test = await openTextApi();
    const headers = { 'idempotency-key': 'penguin-1' };
    const body = { input, background: true };
    await viewOf(await ask(test, path, body, { headers }));
    for (const other of [{ ...body, metadata: { of: 'another' } }, { input }, { ...body, instructions: 'Be brief.' }])
      expect((await ask(test, path, other, { headers })).status).toBe(409);
    expect((await ask(test, path, { ...body, metadata: null, stream: true }, { headers })).status).toBe(200);
  });

  it('its key finds it when what it went on after is not kept any more', async () => {
    const { test, view, url, run } = await openResponse();
    await finish(run, 'a penguin');
    const headers = { 'idempotency-key': 'penguin-2' };
    const send = () => ask(test, path, { input, previous_response_id: view.id, background: true }, { headers });
    const first = await viewOf(await send());
    await test.api.request(url, { method: 'DELETE' });
    const again = await send();
    expect([again.headers.get('idempotent-replayed'), await viewOf(again)]).toEqual(['true', first]);
  });
});

describe('a stream', () => {
  it('has every event once, and can be read again from any of them', async () => {
    const { test, id, reader, run } = await stream();
    await write(run, ['a pen', 'guin']);
    await finish(run, 'a penguin');
    const all = await reader.rest();
    const again = await readFrames(await test.api.request(`${path}/resp_${id}?stream=true`)).rest();
    expect(again).toEqual(all);
    expect(all.map(({ event, data }) => event ?? data)).toEqual([
      'response.created',
      'response.queued',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
      '[DONE]',
    ]);
    for (const [at, frame] of all.slice(0, -1).entries()) {
      const after = String(dataOf(frame)['sequence_number']);
      const rest = await test.api.request(`${path}/resp_${id}?stream=true&starting_after=${after}`);
      expect(await readFrames(rest).rest()).toEqual(all.slice(at + 1));
    }
  });

  it('fails with what went wrong, or says that it was canceled', async () => {
    const failing = await stream();
    await failing.run.finish({ state: 'failed', error: { code: 'worker_lost', message: 'The workers were lost.' } });
    expect((await typesOf(failing.reader)).at(-1)).toEqual(['response.failed', 8]);
    const waiting = await openTextApi();
    const reader = readFrames(await ask(waiting, path, { input, stream: true }));
    expect(dataOf(await reader.next())).toMatchObject({ type: 'response.created', response: { status: 'queued' } });
    const [id] = await waiting.store.redis.zrange(waiting.store.keysOf(writer.id).waiting, '0', '-1');
    await cancelRequest(waiting.store, id!);
    await reader.next();
    expect(dataOf(await reader.next())).toMatchObject({ type: 'response.failed', response: { status: 'cancelled' } });
    expect(await reader.next()).toEqual(done);
  });

  it('of a process that stops says where it goes on, with the last number', async () => {
    const { test, id, reader, run } = await stream();
    await write(run, ['a pen']);
    for (let frame = await reader.next(); dataOf(frame)['sequence_number'] !== 9;) frame = await reader.next();
    const last = reader.rest();
    test.draining.abort();
    test.tick(drainGraceMs);
    const frames = await last;
    expect(frames).toHaveLength(1);
    expect(dataOf(frames[0])).toMatchObject({ type: 'error', sequence_number: 9, code: 'server_stopping' });
    expect(dataOf(frames[0])['message']).toContain(`/v1/responses/resp_${id}?stream=true&starting_after=9`);
    expect(await stateOf(test.store, id)).toBe('running');
  });

  it('of a client that goes away cancels', async () => {
    const { test, id, reader } = await stream();
    await reader.next();
    await reader.cancel();
    await expect.poll(() => test.lines.join()).toContain('went away');
    await test.api.request(`/v1/predict/${id}`);
    expect((await (await test.api.request(`/v1/predict/${id}`)).json()) as Body).toMatchObject({ is_canceling: true });
  });
});

describe('cancel', () => {
  it('ends what waits, and shows what has ended', async () => {
    const test = await openTextApi();
    const { id } = await viewOf(await ask(test, path, { input, background: true }));
    for (let time = 0; time < 2; time++)
      expect(await viewOf(await ask(test, `${path}/${id}/cancel`, undefined))).toMatchObject({ status: 'cancelled' });
  });

  it('waits until what runs has left, with what was written', async () => {
    const { test, url, run } = await openResponse();
    await write(run, ['a pen']);
    const canceling = ask(test, `${url}/cancel`, undefined);
    await expect.poll(() => test.hub.size).toBe(1);
    await run.finish({ state: 'canceled' });
    expect(await viewOf(await canceling)).toMatchObject({
      status: 'cancelled',
      output: [{ status: 'incomplete', content: [{ text: 'a pen' }] }],
    });
  });
});

describe('delete', () => {
  it('removes what has ended, and nothing else', async () => {
    const { test, url, view, run } = await openResponse();
    const remove = async () => {
      const response = await test.api.request(url, { method: 'DELETE' });
      return [response.status, await response.json()];
    };
    expect(await remove()).toMatchObject([409, { error: { code: 'response_open' } }]);
    await write(run, ['a penguin']);
    await finish(run, 'a penguin');
    expect(await remove()).toEqual([200, { id: view.id, object: 'response', deleted: true }]);
    expect(await remove()).toMatchObject([410, { error: { code: 'request_gone' } }]);
    expect((await test.api.request(url)).status).toBe(410);
  });
});
