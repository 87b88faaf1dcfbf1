/** Logprobs in responses: in deltas, in the finished message and in resumed streams. */
import { expect, it } from 'vitest';
import { runNext } from '../testing/fake-worker.ts';
import { type Body, dataOf, finish, input, responsesPath, viewOf } from '../testing/open-response.ts';
import { postJson, caller, logprobOf, openCallerApi, openTextApi, writeTokens } from '../testing/open-text-api.ts';
import { readFrames } from '../testing/sse-reader.ts';

const include = ['message.output_text.logprobs'];
const body = { input, include, top_logprobs: 1, stream: true, background: true };
const other = { token: ' dog', logprob: -2, bytes: [...Buffer.from(' dog')] };
const tokens = [logprobOf('a', -0.5), logprobOf(' fox', -1, [other])];
const views = tokens.map(({ top, ...token }) => ({ ...token, top_logprobs: top }));

interface Delta extends Body {
  delta: string;
  logprobs: { token: string }[];
}

async function deltasOf(response: Response): Promise<Delta[]> {
  const frames = await readFrames(response).rest();
  return frames.filter(({ event }) => event === 'response.output_text.delta').map((frame) => dataOf(frame) as Delta);
}

it('logprobs are sent with the deltas of their tokens and in the response', async () => {
  const test = await openTextApi();
  const response = await postJson(test, responsesPath, body);
  const id = response.headers.get('x-request-id')!;
  const run = await runNext(test.store, 'writer');
  await writeTokens(run, tokens);
  await finish(run, 'a fox');
  const received = (await deltasOf(response)).flatMap(({ logprobs }) => logprobs);
  expect(received).toEqual(views);
  const part = { type: 'output_text', text: 'a fox', annotations: [], logprobs: views };
  const view = await viewOf(await test.api.request(`${responsesPath}/resp_${id}`));
  expect(view.output).toMatchObject([{ content: [part] }]);
  const { parameters } = (await (await test.api.request(`/v1/predict/${id}`)).json()) as { parameters: Body };
  expect(parameters).toMatchObject({ logprobs: true, top_logprobs: 1 });
});

it('logprobs are not repeated when a stream is resumed, even within a chunk', async () => {
  const test = await openTextApi();
  const response = await postJson(test, responsesPath, body);
  const id = response.headers.get('x-request-id')!;
  const run = await runNext(test.store, 'writer');
  await writeTokens(run, tokens);
  await finish(run, 'a fox');
  await deltasOf(response);
  // The number after e code units is 4 + e.
  for (const [after, rest, left] of [
    [4, 'a fox', ['a', ' fox']],
    [5, ' fox', [' fox']],
    [6, 'fox', []],
  ] as const) {
    const resumed = await deltasOf(
      await test.api.request(`${responsesPath}/resp_${id}?stream=true&starting_after=${after}`),
    );
    expect(resumed.map(({ delta }) => delta).join('')).toBe(rest);
    expect(resumed.flatMap(({ logprobs }) => logprobs.map(({ token }) => token))).toEqual(left);
  }
});

it('logprobs exclude the tokens of calls', async () => {
  const test = await openCallerApi();
  const tools = [{ type: 'function', name: 'draw', parameters: { type: 'object', properties: {} } }];
  const response = await postJson(test, responsesPath, { ...body, model: caller.id, tools });
  const run = await runNext(test.store, caller.id);
  const parts = ['Hm', '\n', '<tool_call>\n{"name": "', 'draw', '", "arguments": ', '{}', '}\n</tool_call>'];
  await writeTokens(
    run,
    parts.map((token) => logprobOf(token, -1)),
  );
  await finish(run, parts.join(''));
  const received = (await deltasOf(response)).flatMap(({ logprobs }) => logprobs.map(({ token }) => token));
  expect(received).toEqual(['Hm']);
});

it('logprobs are omitted unless requested', async () => {
  const test = await openTextApi();
  const response = await postJson(test, responsesPath, { input, stream: true, background: true });
  const run = await runNext(test.store, 'writer');
  await writeTokens(run, tokens);
  await finish(run, 'a fox');
  expect((await deltasOf(response)).flatMap(({ logprobs }) => logprobs)).toEqual([]);
});
