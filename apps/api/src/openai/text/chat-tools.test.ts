/** Tool calls in OpenAI's format, parsed from texts as workers write them. */
import { readRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { runNext } from '../../testing/fake-worker.ts';
import { postJson, caller, end, logprobOf, openCallerApi, writeTokens } from '../../testing/open-text-api.ts';
import { readFrames } from '../../testing/sse-reader.ts';
import { chatAnswerSchema } from './chat-completions.ts';

const path = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'something cold' }];
const parameters = { type: 'object', properties: { color: { enum: ['red', 'blue'] } } };
const tools = [{ type: 'function', function: { name: 'draw', parameters } }];

/** Sends a request and leases it. */
async function open(body: object) {
  const test = await openCallerApi();
  const answer = Promise.resolve(postJson(test, path, { model: caller.id, messages, tools, ...body }));
  await expect.poll(() => test.timers()).toBe(3);
  const [id] = await test.store.redis.zrange(test.store.keysOf(caller.id).waiting, 0, '-1');
  return { test, answer, id: id!, run: await runNext(test.store, caller.id) };
}

interface Choice {
  index: number;
  delta: { content?: string; tool_calls?: { index: number; id?: string; function: { arguments: string } }[] };
  logprobs: { content: { token: string }[] } | null;
  finish_reason: string | null;
}

async function choicesOf(response: Response): Promise<Choice[]> {
  const frames = await readFrames(response).rest();
  return frames.slice(0, -1).flatMap(({ data }) => (JSON.parse(data!) as { choices: Choice[] }).choices);
}

const beginning = '<tool_call>\n{"name": "draw", "arguments": ';
const json = '{"color": "red"}';
const fullText = `Let me see.\n${beginning}${json}}\n</tool_call>`;

describe('tool calls', () => {
  it('are returned in the message, each with an id', async () => {
    const { answer, id, run } = await open({ n: 2 });
    await writeTokens(run, [fullText], { index: 0 });
    await end(run, fullText, { index: 0 });
    await writeTokens(run, [`${beginning}${json}}\n</tool_call>\n${beginning}{}`], { index: 1 });
    await end(run, `${beginning}${json}}\n</tool_call>\n${beginning}{}`, { index: 1 });
    await run.finish({ state: 'succeeded', outputs: 2 });
    const body = chatAnswerSchema.parse(await (await answer).json());
    const call = (index: number, at: number, args: string) => ({
      id: `call_${id}_${index}_${at}`,
      type: 'function',
      function: { name: 'draw', arguments: args },
    });
    expect(body.choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: 'Let me see.', tool_calls: [call(0, 0, json)], refusal: null },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
      {
        index: 1,
        message: { role: 'assistant', content: null, tool_calls: [call(1, 0, json), call(1, 1, '{}')], refusal: null },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ]);
  });

  const called = '<tool_call>\n{"name": "draw", "arguments": {"color": "red"}}\n</tool_call>';
  it.each([
    ['at once', [called], {}],
    ['token by token', called.split(/(?<=\W)/), {}],
    [
      'token by token, with probabilities',
      called.split(/(?<=\W)/).map((token) => logprobOf(token, -1)),
      { logprobs: true },
    ],
  ])('make the first chunk of a stream have null content if no text precedes them: %s', async (_how, pieces, more) => {
    const { answer, run } = await open({ stream: true, ...more });
    await writeTokens(run, pieces);
    await end(run, called);
    await run.finish();
    const [first, second] = await choicesOf(await answer);
    expect(first).toMatchObject({ delta: { role: 'assistant', content: null } });
    expect(second).toMatchObject({ delta: { tool_calls: [{ function: { name: 'draw' } }] } });
  });

  it('are streamed as the name, then the arguments, without their markup', async () => {
    const { answer, id, run } = await open({ stream: true });
    await writeTokens(run, [
      'Let me see',
      '.\n<tool',
      '_call>\n{"name": "dr',
      'aw", "arguments": {"co',
      'lor": "red"}}\n</too',
    ]);
    await writeTokens(run, ['l_call>'], { offset: fullText.length - 7 });
    await end(run, fullText);
    await run.finish();
    const choices = await choicesOf(await answer);
    expect(choices.map(({ delta, finish_reason: reason }) => reason ?? delta)).toEqual([
      { role: 'assistant', content: '' },
      { content: 'Let me see' },
      { content: '.' },
      {
        tool_calls: [{ index: 0, id: `call_${id}_0_0`, type: 'function', function: { name: 'draw', arguments: '' } }],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"co' } }] },
      { tool_calls: [{ index: 0, function: { arguments: 'lor": "red"}' } }] },
      'tool_calls',
    ]);
  });

  it('that turn out to be text are streamed as text, at the latest at the end', async () => {
    const { answer, run } = await open({ stream: true });
    await writeTokens(run, ['a <tool', ' box and a <to']);
    await end(run, 'a <tool box and a <to');
    await run.finish();
    const choices = await choicesOf(await answer);
    expect(choices.map(({ delta, finish_reason: reason }) => reason ?? delta.content)).toEqual([
      '',
      'a',
      ' <tool box and a',
      ' <to',
      'stop',
    ]);
  });

  it('that were cut off have finish_reason length', async () => {
    for (const stream of [false, true]) {
      const { answer, run } = await open({ stream });
      await writeTokens(run, [`${beginning}{"col`]);
      await end(run, `${beginning}{"col`, { finish_reason: 'length' });
      await run.finish();
      const choices = stream
        ? await choicesOf(await answer)
        : chatAnswerSchema.parse(await (await answer).json()).choices;
      expect(choices.at(-1)!.finish_reason).toBe('length');
      expect(JSON.stringify(choices)).toContain(JSON.stringify({ arguments: '{"col' }).slice(1, -1));
    }
  });

  it('have logprobs of all tokens, including those of their markup', async () => {
    const { answer, run } = await open({ stream: true, logprobs: true });
    const parts = ['Hm', ' ', '<tool_call>', '\n{"name": "', 'draw', '", "arguments": ', json, '}\n</tool_call>'];
    await writeTokens(
      run,
      parts.map((part) => logprobOf(part, -1)),
    );
    await end(run, parts.join(''));
    await run.finish();
    const tokens = (await choicesOf(await answer)).flatMap(({ logprobs }) => logprobs?.content ?? []);
    expect(tokens.map(({ token }) => token)).toEqual(parts);
  });

  it('are plain text with tool_choice none', async () => {
    const { answer, run } = await open({ tool_choice: 'none' });
    await writeTokens(run, [fullText]);
    await end(run, fullText);
    await run.finish();
    expect(await (await answer).json()).toMatchObject({
      choices: [{ message: { content: fullText }, finish_reason: 'stop' }],
    });
  });
});

it('stores tools and tool_choice, and shows them in the view of the request', async () => {
  const { test, id } = await open({ tool_choice: 'required' });
  const { request } = (await readRequest(test.store, id)) as { request: { input: object } };
  expect(request.input).toMatchObject({
    constraint: { type: 'tags_with_separator' },
    form: { tools, tool_choice: 'required' },
    callMarkup: { begin: '<tool_call>\n{"name": "' },
  });
  const view = await test.api.request(`/v1/predict/${id}`);
  expect(await view.json()).toMatchObject({ parameters: { tools, tool_choice: 'required' } });
});

it('continues a conversation with tool calls and tool results in the format of SDKs', async () => {
  const test = await openCallerApi();
  const calls = [{ id: 'call_1', type: 'function', function: { name: 'draw', arguments: json } }];
  const conversation = [
    ...messages,
    { role: 'assistant', content: null, tool_calls: calls, refusal: null },
    { role: 'tool', content: [{ type: 'text', text: 'done' }], tool_call_id: 'call_1' },
  ];
  const answer = Promise.resolve(postJson(test, path, { model: caller.id, messages: conversation, tools }));
  await expect.poll(() => test.timers()).toBe(3);
  const run = await runNext(test.store, caller.id);
  await end(run, 'Here.');
  await run.finish();
  expect(await (await answer).json()).toMatchObject({ choices: [{ message: { content: 'Here.' } }] });
});
