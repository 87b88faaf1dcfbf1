/** Calls of tools as OpenAI's clients know them, of texts as workers write them. */
import { readRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { runNext } from '../../testing/fake-worker.ts';
import { ask, caller, end, logprobOf, openCallerApi, write } from '../../testing/open-text-api.ts';
import { readFrames } from '../../testing/sse-reader.ts';
import { chatAnswerSchema } from './chat-schema.ts';

const path = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'something cold' }];
const parameters = { type: 'object', properties: { color: { enum: ['red', 'blue'] } } };
const tools = [{ type: 'function', function: { name: 'draw', parameters } }];

/** A request that runs. */
async function open(body: object) {
  const test = await openCallerApi();
  const answer = Promise.resolve(ask(test, path, { model: caller.id, messages, tools, ...body }));
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
const said = `Let me see.\n${beginning}${json}}\n</tool_call>`;

describe('calls', () => {
  it('stand in the message, each with an id', async () => {
    const { answer, id, run } = await open({ n: 2 });
    await write(run, [said], { index: 0 });
    await end(run, said, { index: 0 });
    await write(run, [`${beginning}${json}}\n</tool_call>\n${beginning}{}`], { index: 1 });
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

  it('come in a stream: the name, then the arguments, and nothing of what stands around them', async () => {
    const { answer, id, run } = await open({ stream: true });
    await write(run, [
      'Let me see',
      '.\n<tool',
      '_call>\n{"name": "dr',
      'aw", "arguments": {"co',
      'lor": "red"}}\n</too',
    ]);
    await write(run, ['l_call>'], { offset: said.length - 7 });
    await end(run, said);
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

  it('that were none come as text at the latest when it ends', async () => {
    const { answer, run } = await open({ stream: true });
    await write(run, ['a <tool', ' box and a <to']);
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

  it('that were cut say so', async () => {
    for (const stream of [false, true]) {
      const { answer, run } = await open({ stream });
      await write(run, [`${beginning}{"col`]);
      await end(run, `${beginning}{"col`, { finish_reason: 'length' });
      await run.finish();
      const choices = stream
        ? await choicesOf(await answer)
        : chatAnswerSchema.parse(await (await answer).json()).choices;
      expect(choices.at(-1)!.finish_reason).toBe('length');
      expect(JSON.stringify(choices)).toContain(JSON.stringify({ arguments: '{"col' }).slice(1, -1));
    }
  });

  it('have the probabilities of all tokens, those of what stands around them too', async () => {
    const { answer, run } = await open({ stream: true, logprobs: true });
    const parts = ['Hm', ' ', '<tool_call>', '\n{"name": "', 'draw', '", "arguments": ', json, '}\n</tool_call>'];
    await write(
      run,
      parts.map((part) => logprobOf(part, -1)),
    );
    await end(run, parts.join(''));
    await run.finish();
    const tokens = (await choicesOf(await answer)).flatMap(({ logprobs }) => logprobs?.content ?? []);
    expect(tokens.map(({ token }) => token)).toEqual(parts);
  });

  it('of a request without tools in use are text', async () => {
    const { answer, run } = await open({ tool_choice: 'none' });
    await write(run, [said]);
    await end(run, said);
    await run.finish();
    expect(await (await answer).json()).toMatchObject({
      choices: [{ message: { content: said }, finish_reason: 'stop' }],
    });
  });
});

it('what is asked for is stored, for the engine and for whoever looks', async () => {
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

it('a conversation with calls goes on: messages as SDKs hand them back', async () => {
  const test = await openCallerApi();
  const calls = [{ id: 'call_1', type: 'function', function: { name: 'draw', arguments: json } }];
  const said = [
    ...messages,
    { role: 'assistant', content: null, tool_calls: calls, refusal: null },
    { role: 'tool', content: [{ type: 'text', text: 'done' }], tool_call_id: 'call_1' },
  ];
  const answer = Promise.resolve(ask(test, path, { model: caller.id, messages: said, tools }));
  await expect.poll(() => test.timers()).toBe(3);
  const run = await runNext(test.store, caller.id);
  await end(run, 'Here.');
  await run.finish();
  expect(await (await answer).json()).toMatchObject({ choices: [{ message: { content: 'Here.' } }] });
});
