/** A rerun that writes a different text, as seen through every route. */
import { expect, it } from 'vitest';
import type { RunningRequest } from '../../testing/fake-worker.ts';
import { listen } from '../../testing/listen.ts';
import { type Frame, readFrames } from '../../testing/sse-reader.ts';
import { openImageAndTextApi, runNextText, textFacts, textModel } from '../../testing/text-model.ts';

const facts = textFacts({ finish_reason: 'stop', completion_tokens: 3, calls: 3 });
const chat = { model: textModel, messages: [{ role: 'user', content: 'something cold' }] };
const prompt = { model: textModel, prompt: 'something cold' };

/** Resets and rewrites the text as a worker does when it resumes a request; without token metadata. */
async function rewrite(run: RunningRequest, rest: string): Promise<void> {
  await run.entry({ type: 'reset', offset: 6 });
  await run.entry({ type: 'snapshot', isWhole: true, offset: 0, text: 'a red ', changedFrom: 6 });
  await run.entry({ type: 'delta', offset: 6, text: rest });
  await run.output(0, Buffer.from(`a red ${rest}`), 100, facts);
  await run.finish({ state: 'succeeded', outputs: 1 });
}

async function begin(path: string, body: object, headers: Record<string, string> = {}) {
  const test = await openImageAndTextApi('autoregressive');
  const { url } = await listen(test);
  const answer = fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  await expect.poll(() => test.store.redis.zcard(test.store.keysOf(textModel).waiting)).toBe(1);
  const run = await runNextText(test);
  await run.entry({ type: 'delta', offset: 0, text: 'a red ' });
  await run.entry({ type: 'delta', offset: 6, text: 'fox' });
  return { answer, run, url, test };
}

/** Returns all frames of a stream; rewrites the text after the frame that contains `fox`. */
async function streamOf(response: Response, run: RunningRequest, rest: string): Promise<Frame[]> {
  const reader = readFrames(response);
  const frames: Frame[] = [];
  while (!frames.at(-1)?.data?.includes('fox')) frames.push((await reader.next())!);
  await rewrite(run, rest);
  return [...frames, ...(await reader.rest())];
}

const textOf = (frames: readonly Frame[]): string =>
  frames
    .filter(({ data }) => data !== '[DONE]')
    .map(({ data }) => JSON.parse(data!) as { choices?: { delta: { content?: string } }[] })
    .map(({ choices }) => choices?.[0]?.delta.content ?? '')
    .join('');

it('ends a stream of chunks with text_changed if a rerun writes a different text', async () => {
  const { answer, run } = await begin('/v1/chat/completions', { ...chat, stream: true });
  const frames = await streamOf(await answer, run, 'cat');
  expect(textOf(frames)).toBe('a red fox');
  expect(JSON.parse(frames.at(-1)!.data!)).toMatchObject({ error: { code: 'text_changed' } });
});

it('continues a stream if a rerun only adds text', async () => {
  const { answer, run } = await begin('/v1/chat/completions', { ...chat, stream: true });
  const frames = await streamOf(await answer, run, 'fox on it');
  expect(textOf(frames)).toBe('a red fox on it');
  expect(frames.at(-1)).toEqual({ data: '[DONE]' });
});

it("returns the rerun's text without streaming", async () => {
  const { answer, run } = await begin('/v1/chat/completions', { ...chat, logprobs: true });
  await rewrite(run, 'cat');
  const body = (await (await answer).json()) as { choices: object[] };
  expect(body.choices).toMatchObject([{ message: { content: 'a red cat' }, logprobs: null }]);
});

it.each([
  ['/generate', { ...prompt, stream: true }],
  ['/v1/responses', { model: textModel, input: 'something cold', stream: true }],
])('ends a stream of %s with an error event if a rerun writes a different text', async (path, body) => {
  const { answer, run } = await begin(path, body);
  const frames = await streamOf(await answer, run, 'cat');
  expect(frames.at(-1)).toMatchObject({ event: 'error', data: expect.stringContaining('text_changed') as string });
});

it('ends a resumed response with an error if text before starting_after was retracted, and continues it otherwise', async () => {
  const { answer, run, url } = await begin('/v1/responses', {
    model: textModel,
    input: 'something cold',
    stream: true,
    background: true,
  });
  const response = await answer;
  const reader = readFrames(response);
  let last: Frame | undefined;
  while (!last?.data?.includes('fox')) last = await reader.next();
  await reader.cancel();
  expect(JSON.parse(last.data)).toMatchObject({ sequence_number: 13, delta: 'fox' });
  await rewrite(run, 'cat on it');
  const at = `${url}/v1/responses/resp_${response.headers.get('x-request-id')!}?stream=true`;
  const after = async (number: number) => readFrames(await fetch(`${at}&starting_after=${number}`)).rest();
  // The error has the sequence number given as starting_after.
  for (const number of [11, 13]) {
    const frames = await after(number);
    expect(frames.map(({ event }) => event)).toEqual(['error']);
    expect(JSON.parse(frames[0]!.data!)).toMatchObject({ sequence_number: number, code: 'text_changed' });
  }
  for (const [number, rest] of [
    [0, 'a red cat on it'],
    [6, 'red cat on it'],
    [10, 'cat on it'],
  ] as const) {
    const frames = await after(number);
    expect(frames.at(-1)).toEqual({ data: '[DONE]' });
    const deltas = frames.flatMap(({ event, data }) =>
      event === 'response.output_text.delta' ? (JSON.parse(data!) as { delta: string }).delta : [],
    );
    expect(deltas.join('')).toBe(rest);
  }
});

it("aborts a text/plain stream if a rerun writes a different text; later clients get the rerun's full text", async () => {
  const { answer, run, url } = await begin('/v1/predict', prompt, { Accept: 'text/plain' });
  const response = await answer;
  const reading = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.endsWith('fox')) text += (await reading.read()).value ?? '';
  await rewrite(run, 'cat');
  await expect(reading.read()).rejects.toThrow('terminated');
  const at = `${url}${response.headers.get('location')!}`;
  expect(await (await fetch(at, { headers: { Accept: 'text/plain' } })).text()).toBe('a red cat');
  expect(await (await fetch(at)).json()).toMatchObject({ texts: [{ index: 0, text: 'a red cat' }] });
});

it("returns the rerun's text from /generate and /v1/responses without streaming", async () => {
  const generated = await begin('/generate', prompt);
  await rewrite(generated.run, 'cat');
  expect(await (await generated.answer).json()).toMatchObject({ full_text: 'a red cat' });
  const responded = await begin('/v1/responses', { model: textModel, input: 'something cold' });
  await rewrite(responded.run, 'cat');
  expect(JSON.stringify(await (await responded.answer).json())).toContain('"a red cat"');
});
