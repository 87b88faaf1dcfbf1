/** Responses over HTTP, with a fake worker. */
import { cancelRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { drainGraceMs } from '../answer/follow-stored.ts';
import { runNext } from '../testing/fake-worker.ts';
import { stateOf } from '../testing/generate.ts';
import { type Body, dataOf, finish, input, openResponse, responsesPath, viewOf } from '../testing/open-response.ts';
import { postJson, openTextApi, writeTokens, writer } from '../testing/open-text-api.ts';
import { type Frame, readFrames, type SseReader } from '../testing/sse-reader.ts';

const done: Frame = { data: '[DONE]' };

/** Opens a stream and leases its request. */
async function stream(body: Body = {}) {
  const test = await openTextApi();
  const response = await postJson(test, responsesPath, { input, stream: true, ...body });
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

describe('a response without streaming', () => {
  it('contains all fields', async () => {
    const test = await openTextApi();
    const metadata = { purpose: 'a test' };
    const asking = postJson(test, responsesPath, {
      input,
      instructions: 'Be short.',
      max_output_tokens: 9,
      temperature: 1,
      metadata,
    });
    await expect.poll(() => test.hub.size).toBe(1);
    const run = await runNext(test.store, writer.id);
    await writeTokens(run, ['a penguin', ' on ice']);
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
    expect(await viewOf(await test.api.request(`${responsesPath}/${view.id}`))).toEqual(view);
    const { parameters } = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: Body };
    expect(parameters).toMatchObject({ max_tokens: 9, temperature: 1, model: 'writer' });
  });

  it('is incomplete if the text was cut off', async () => {
    const { test, url, run } = await openResponse();
    await writeTokens(run, ['a penguin']);
    await finish(run, 'a penguin', { finish_reason: 'length' });
    expect(await viewOf(await test.api.request(url))).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete' }],
    });
  });

  it('is an error that no SDK retries if the request fails', async () => {
    const test = await openTextApi();
    const asking = postJson(test, responsesPath, { input });
    await expect.poll(() => test.hub.size).toBe(1);
    const run = await runNext(test.store, writer.id);
    await run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'Nothing came of it.' } });
    const response = await asking;
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([422, 'false']);
    expect(await response.json()).toMatchObject({ error: { code: 'engine_failed' } });
  });

  it('is canceled when its client disconnects', async () => {
    const test = await openTextApi();
    const abort = new AbortController();
    const asking = postJson(test, responsesPath, { input }, { signal: abort.signal });
    await expect.poll(() => test.hub.size).toBe(1);
    const [id] = await test.store.redis.zrange(test.store.keysOf(writer.id).waiting, '0', '-1');
    abort.abort();
    await asking;
    await expect.poll(() => stateOf(test.store, id!)).toBe('canceled');
  });
});

it('rejects cancel of a foreground response with 400 not_in_background', async () => {
  const { test, id, run } = await stream();
  const answer = await postJson(test, `${responsesPath}/resp_${id}/cancel`, {});
  expect([answer.status, answer.headers.get('x-request-id')]).toEqual([400, id]);
  expect(await answer.json()).toMatchObject({ error: { code: 'not_in_background' } });
  expect(await stateOf(test.store, id)).toBe('running');
  await finish(run, '');
});

describe('a background response', () => {
  it('is returned at once, and shows its progress', async () => {
    const { test, view, url, run } = await openResponse();
    expect(view).toMatchObject({ status: 'queued', background: true, output: [], usage: null });
    expect(await viewOf(await test.api.request(url))).toEqual({ ...view, status: 'in_progress' });
    await writeTokens(run, ['a pen', 'guin']);
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

  it('is not canceled when its client disconnects, and its stream resumes on another replica', async () => {
    const { test, id, reader, run } = await stream({ background: true });
    await writeTokens(run, ['a pen']);
    const seen: Frame[] = [];
    for (let frame = await reader.next(); dataOf(frame)['sequence_number'] !== 9; frame = await reader.next())
      seen.push(frame!);
    await reader.cancel();
    expect([await stateOf(test.store, id), test.hub.size]).toEqual(['running', 0]);
    const other = test.replica();
    const resumed = await other.api.request(`${responsesPath}/resp_${id}?stream=true&starting_after=9`);
    const rest = readFrames(resumed);
    await writeTokens(run, ['guin'], { offset: 5 });
    expect(dataOf(await rest.next())).toMatchObject({ delta: 'guin', sequence_number: 13 });
    await finish(run, 'a penguin');
    expect(await typesOf(rest)).toEqual([
      ['response.output_text.done', 14],
      ['response.content_part.done', 15],
      ['response.output_item.done', 16],
      ['response.completed', 17],
    ]);
  });

  it('is found by its Idempotency-Key in any state', async () => {
    const test = await openTextApi();
    const headers = { 'idempotency-key': 'penguin-1' };
    const send = async () => viewOf(await postJson(test, responsesPath, { input, background: true }, { headers }));
    const first = await send();
    const run = await runNext(test.store, writer.id);
    await writeTokens(run, ['a penguin']);
    await finish(run, 'a penguin');
    expect(await send()).toMatchObject({ id: first.id, status: 'completed' });
  });

  it('conflicts with a different body under the same Idempotency-Key', async () => {
    const test = await openTextApi();
    const headers = { 'idempotency-key': 'penguin-1' };
    const body = { input, background: true };
    await viewOf(await postJson(test, responsesPath, body, { headers }));
    for (const other of [{ ...body, metadata: { of: 'another' } }, { input }, { ...body, instructions: 'Be brief.' }])
      expect((await postJson(test, responsesPath, other, { headers })).status).toBe(409);
    expect((await postJson(test, responsesPath, { ...body, metadata: null, stream: true }, { headers })).status).toBe(
      200,
    );
  });

  it('is found by its Idempotency-Key after its previous response was deleted', async () => {
    const { test, view, url, run } = await openResponse();
    await finish(run, 'a penguin');
    const headers = { 'idempotency-key': 'penguin-2' };
    const send = () =>
      postJson(test, responsesPath, { input, previous_response_id: view.id, background: true }, { headers });
    const first = await viewOf(await send());
    await test.api.request(url, { method: 'DELETE' });
    const again = await send();
    expect([again.headers.get('idempotent-replayed'), await viewOf(again)]).toEqual(['true', first]);
  });
});

describe('a stream', () => {
  it('contains every event once, and resumes after any of them', async () => {
    const { test, id, reader, run } = await stream();
    await writeTokens(run, ['a pen', 'guin']);
    await finish(run, 'a penguin');
    const all = await reader.rest();
    const again = await readFrames(await test.api.request(`${responsesPath}/resp_${id}?stream=true`)).rest();
    expect(again).toEqual(all);
    expect(all.map(({ event, data }) => event ?? data)).toEqual([
      'response.created',
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
      const rest = await test.api.request(`${responsesPath}/resp_${id}?stream=true&starting_after=${after}`);
      expect(await readFrames(rest).rest()).toEqual(all.slice(at + 1));
    }
  });

  it('ends with response.failed if the response fails or is canceled', async () => {
    const failing = await stream();
    await failing.run.finish({ state: 'failed', error: { code: 'worker_lost', message: 'The workers were lost.' } });
    expect((await typesOf(failing.reader)).at(-1)).toEqual(['response.failed', 8]);
    const waiting = await openTextApi();
    const reader = readFrames(await postJson(waiting, responsesPath, { input, stream: true }));
    expect(dataOf(await reader.next())).toMatchObject({ type: 'response.created', response: { status: 'queued' } });
    const [id] = await waiting.store.redis.zrange(waiting.store.keysOf(writer.id).waiting, '0', '-1');
    await cancelRequest(waiting.store, id!);
    expect(dataOf(await reader.next())).toMatchObject({ type: 'response.failed', response: { status: 'cancelled' } });
    expect(await reader.next()).toEqual(done);
  });

  it('ends on shutdown with an error that contains the URL to resume at', async () => {
    const { test, id, reader, run } = await stream();
    await writeTokens(run, ['a pen']);
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

  it('cancels the response when its client disconnects', async () => {
    const { test, id, reader } = await stream();
    await reader.next();
    await reader.cancel();
    await expect.poll(() => test.lines.join()).toContain('client disconnected');
    await test.api.request(`/v1/predict/${id}`);
    expect((await (await test.api.request(`/v1/predict/${id}`)).json()) as Body).toMatchObject({ is_canceling: true });
  });
});

describe('cancel', () => {
  it('cancels a queued response, and returns a response that has ended', async () => {
    const test = await openTextApi();
    const { id } = await viewOf(await postJson(test, responsesPath, { input, background: true }));
    for (let time = 0; time < 2; time++)
      expect(await viewOf(await postJson(test, `${responsesPath}/${id}/cancel`, undefined))).toMatchObject({
        status: 'cancelled',
      });
  });

  it('waits until a running response has left the model, and returns its partial text', async () => {
    const { test, url, run } = await openResponse();
    await writeTokens(run, ['a pen']);
    const canceling = postJson(test, `${url}/cancel`, undefined);
    await expect.poll(() => test.hub.size).toBe(1);
    await run.finish({ state: 'canceled' });
    expect(await viewOf(await canceling)).toMatchObject({
      status: 'cancelled',
      output: [{ status: 'incomplete', content: [{ text: 'a pen' }] }],
    });
  });
});

describe('delete', () => {
  it('deletes a response that has ended, and rejects one that has not', async () => {
    const { test, url, view, run } = await openResponse();
    const remove = async () => {
      const response = await test.api.request(url, { method: 'DELETE' });
      return [response.status, await response.json()];
    };
    expect(await remove()).toMatchObject([409, { error: { code: 'response_open' } }]);
    await writeTokens(run, ['a penguin']);
    await finish(run, 'a penguin');
    expect(await remove()).toEqual([200, { id: view.id, object: 'response', deleted: true }]);
    expect(await remove()).toMatchObject([410, { error: { code: 'request_gone' } }]);
    expect((await test.api.request(url)).status).toBe(410);
  });
});
