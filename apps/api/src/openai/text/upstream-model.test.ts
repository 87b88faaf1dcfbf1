/** Requests to a model of an upstream server: fields are forwarded as they were sent. */
import { timeOfRequestId } from '@darkroom/core';
import { publishModel, readRequest } from '@darkroom/store';
import { upstreamTextCard } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { runNext, startWorker } from '../../testing/fake-worker.ts';
import { postJson, end } from '../../testing/open-text-api.ts';
import { openTestApi } from '../../testing/test-api.ts';

const card = { ...upstreamTextCard, hasTools: false };
const messages = [{ role: 'user', content: 'something cold' }];

async function open() {
  const test = await openTestApi();
  await publishModel(test.store, card);
  await startWorker(test.store, { model: card.id });
  return test;
}

it('stores messages unchanged for the upstream server, on every route', async () => {
  const test = await open();
  const bodies: [path: string, body: object, stored: object][] = [
    ['/v1/predict', { messages }, { messages }],
    ['/v1/predict', { prompt: 'once', max_tokens: 3 }, { prompt: 'once', max_tokens: 3 }],
    ['/v1/responses', { input: 'something cold', background: true, temperature: 0.5 }, { messages, temperature: 0.5 }],
  ];
  for (const [path, body, stored] of bodies) {
    const answer = (await (await postJson(test, path, { model: card.id, ...body })).json()) as Record<string, string>;
    const id = answer['request_id'] ?? answer['id']!.replace(/^resp_/, '');
    expect(await readRequest(test.store, id)).toMatchObject({ request: { input: { params: stored, n: 1 } } });
  }
});

it("answers chats with the upstream server's text, without token ids", async () => {
  const test = await open();
  const answer = postJson(test, '/v1/chat/completions', { model: card.id, messages, seed: 3 });
  await expect.poll(() => test.store.redis.zcard(test.store.keysOf(card.id).waiting)).toBe(1);
  const run = await runNext(test.store, card.id);
  await run.entry({ type: 'delta', offset: 0, text: 'an ice' });
  await run.entry({ type: 'delta', offset: 6, text: ' cream' });
  await end(run, 'an ice cream');
  await run.finish({ state: 'succeeded', outputs: 1 });
  const response = await answer;
  const id = response.headers.get('x-request-id')!;
  expect(await response.json()).toMatchObject({
    created: Math.floor(timeOfRequestId(id) / 1000),
    choices: [{ message: { content: 'an ice cream' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
  });
  const view = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: object };
  expect(view.parameters).toEqual({ model: card.id, messages, prompt: null, n: 1, seed: 3 });
  const { data } = (await (await test.api.request('/v1/models')).json()) as { data: { id: string }[] };
  expect(data.find(({ id: each }) => each === card.id)).toMatchObject({ kind: 'text', deterministic: false });
});
