/** The OpenAI SDK with structured output and tool calls. */
import OpenAI, { BadRequestError } from 'openai';
import { zodFunction, zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { caller } from './caller-model.ts';
import { poll } from './client.ts';
import { blockWriter, useSharedSystem, writer } from './shared-system.ts';

const system = useSharedSystem();
const open = (): OpenAI => new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none', maxRetries: 0 });
const messages = [{ role: 'user' as const, content: 'something sweet for a birthday party' }];

const image = z.object({
  thing: z.enum(['cake', 'fox', 'house']),
  colors: z
    .array(z.enum(['red', 'blue', 'pink']))
    .min(1)
    .max(2),
  isBig: z.boolean(),
});
type Image = z.infer<typeof image>;

const parameters = { type: 'object', properties: { color: { enum: ['red', 'blue'] } }, required: ['color'] };
const tools = ['draw', 'paint'].map((name) => ({ type: 'function' as const, function: { name, parameters } }));

describe('OpenAI SDK structured output', () => {
  it('parses a Zod schema', async () => {
    const { choices } = await open().chat.completions.parse({
      model: writer,
      messages,
      max_completion_tokens: 100,
      response_format: zodResponseFormat(image, 'image'),
    });
    const [{ message, finish_reason: reason }] = choices as [(typeof choices)[0]];
    expect(reason).toBe('stop');
    expect(image.parse(message.parsed)).toEqual(message.parsed);
    expect(JSON.parse(message.content!)).toEqual(message.parsed);
  });

  it('streams the same object', async () => {
    const body = {
      model: writer,
      messages,
      max_completion_tokens: 100,
      response_format: zodResponseFormat(image, 'p'),
    };
    const runner = open().chat.completions.stream(body);
    const final = await runner.finalChatCompletion();
    const unstreamed = await open().chat.completions.parse(body);
    expect(final.choices[0]!.message.parsed).toEqual(unstreamed.choices[0]!.message.parsed as Image);
  });

  it('json_object mode and GBNF grammars', async () => {
    const { choices } = await open().chat.completions.create({
      model: writer,
      messages,
      max_completion_tokens: 200,
      temperature: 1,
      n: 3,
      seed: 5,
      response_format: { type: 'json_object' },
    });
    const finished = choices.filter(({ finish_reason: reason }) => reason === 'stop');
    for (const { message } of finished) expect(JSON.parse(message.content!)).toBeTypeOf('object');
    for (const { message } of choices) expect(message.content).toMatch(/^\{/);
    const grammar = { grammar: 'root ::= "a " ("red" | "blue") " fox"' } as object;
    const fox = await open().chat.completions.create({ model: writer, messages, ...grammar });
    expect(fox.choices).toMatchObject([
      { message: { content: expect.stringMatching(/^a (red|blue) fox$/) as string }, finish_reason: 'stop' },
    ]);
    const completion = await open().completions.create({ model: writer, prompt: 'a bird', ...grammar });
    expect(completion.choices[0]!.text).toMatch(/^a (red|blue) fox$/);
  });
});

describe('OpenAI SDK tool calls', () => {
  it("finish with tool_calls, and the next turn reads the tool's result", async () => {
    expect(await open().models.retrieve(caller)).toMatchObject({ has_tools: true });
    expect(await open().models.retrieve(writer)).toMatchObject({ has_tools: false });
    const body = { model: caller, messages, tools, tool_choice: 'required' as const, max_completion_tokens: 200 };
    const { choices, _request_id: id } = await open().chat.completions.create({ ...body, parallel_tool_calls: false });
    const [{ message, finish_reason: reason }] = choices as [(typeof choices)[0]];
    expect([message.content, reason]).toEqual([null, 'tool_calls']);
    const [call] = message.tool_calls as [OpenAI.ChatCompletionMessageFunctionToolCall];
    expect(call.id).toBe(`call_${id}_0_0`);
    expect(['draw', 'paint']).toContain(call.function.name);
    expect(['red', 'blue']).toContain((JSON.parse(call.function.arguments) as { color: string }).color);
    expect(await poll(system.url, id!)).toMatchObject({ texts: [{ tool_calls: [call] }], parameters: { tools } });
    const next = await open().chat.completions.create({
      ...body,
      messages: [...messages, message, { role: 'tool', tool_call_id: call.id, content: 'drawn' }],
      tool_choice: 'none',
    });
    expect(next.choices[0]!.message).not.toHaveProperty('tool_calls');
  });

  it('stream the same call of the chosen function', async () => {
    const body = {
      model: caller,
      messages,
      tools,
      tool_choice: { type: 'function' as const, function: { name: 'paint' } },
      max_completion_tokens: 200,
    };
    const unstreamed = await open().chat.completions.create(body);
    const [called] = unstreamed.choices[0]!.message.tool_calls as [OpenAI.ChatCompletionMessageFunctionToolCall];
    expect(called.function.name).toBe('paint');
    const runner = open().chat.completions.stream(body);
    const contents: string[] = [];
    runner.on('content', (delta) => contents.push(delta));
    const final = await runner.finalChatCompletion();
    expect(contents.join('')).toBe('');
    expect(final.choices[0]!.finish_reason).toBe('tool_calls');
    expect(final.choices[0]!.message.tool_calls).toMatchObject([{ function: called.function }]);
  });

  it('run by the runTools helper', async () => {
    const colors: string[] = [];
    const runner = open().chat.completions.runTools(
      {
        model: caller,
        messages,
        max_completion_tokens: 200,
        tool_choice: { type: 'function', function: { name: 'draw' } },
        tools: [
          {
            type: 'function',
            function: {
              name: 'draw',
              description: 'Draws.',
              parameters,
              parse: (json: string) => JSON.parse(json) as { color: string },
              function: ({ color }: { color: string }) => {
                colors.push(color);
                return 'drawn';
              },
            },
          },
        ],
      },
      { maxChatCompletions: 1 },
    );
    await runner.done();
    expect(colors).toHaveLength(1);
    expect(['red', 'blue']).toContain(colors[0]);
    expect(runner.messages.at(-1)).toMatchObject({ role: 'tool', content: 'drawn' });
  });

  it('have arguments of a Zod schema', async () => {
    const tool = zodFunction({ name: 'show', parameters: image });
    const { choices } = await open().chat.completions.parse({
      model: caller,
      messages,
      tools: [tool],
      tool_choice: 'required',
      parallel_tool_calls: false,
      max_completion_tokens: 300,
    });
    const [call] = choices[0]!.message.tool_calls!;
    expect(image.parse(call!.function.parsed_arguments)).toEqual(call!.function.parsed_arguments);
  });

  it('are optional with tool_choice auto', async () => {
    const { choices } = await open().chat.completions.create({ model: caller, messages, tools });
    expect(choices).toMatchObject([{ message: { role: 'assistant' } }]);
    expect(choices[0]!.message.content ?? '').not.toContain('<tool_call>');
  });
});

/** Returns the merged argument deltas of a stream, then its other events. */
function mergeDeltas(events: readonly OpenAI.Responses.ResponseStreamEvent[]) {
  const deltas = events.map((event) => (event.type === 'response.function_call_arguments.delta' ? event.delta : ''));
  return [deltas.join(''), ...events.filter(({ type }) => type !== 'response.function_call_arguments.delta')];
}

describe('OpenAI SDK responses', () => {
  it('parse a Zod schema', async () => {
    const response = await open().responses.parse({
      model: writer,
      input: messages,
      max_output_tokens: 100,
      text: { format: zodTextFormat(image, 'image') },
    });
    expect(image.parse(response.output_parsed)).toEqual(response.output_parsed);
  });

  it('call functions, continue with their outputs, and resume in the middle of a call', async () => {
    const body = {
      model: caller,
      tools: [{ type: 'function' as const, name: 'draw', parameters, strict: true }],
      max_output_tokens: 200,
    };
    const choice = { type: 'function' as const, name: 'draw' };
    const stream = await open().responses.create({ ...body, input: messages, tool_choice: choice, stream: true });
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) events.push(event);
    const last = events.at(-1)!;
    if (last.type !== 'response.completed') throw new Error(`ended with ${last.type}`);
    const [call] = last.response.output as [OpenAI.Responses.ResponseFunctionToolCall];
    expect(call).toMatchObject({ type: 'function_call', status: 'completed', name: 'draw' });
    const { color } = JSON.parse(call.arguments) as { color: string };
    expect(['red', 'blue']).toContain(color);

    const middle = events.find(({ type }) => type === 'response.function_call_arguments.delta')!.sequence_number;
    const rest: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await open().responses.retrieve(last.response.id, {
      stream: true,
      starting_after: middle,
    }))
      rest.push(event);
    // A resumed stream may split its deltas elsewhere.
    expect(mergeDeltas(rest)).toEqual(mergeDeltas(events.filter((event) => event.sequence_number > middle)));
    const helper = open().responses.stream({ response_id: last.response.id, starting_after: middle });
    expect((await helper.finalResponse()).output).toMatchObject([{ name: 'draw', arguments: call.arguments }]);

    const given = { type: 'function_call_output' as const, call_id: call.call_id, output: 'drawn' };
    const next = await open().responses.create({ ...body, input: [given], previous_response_id: last.response.id });
    const again = await open().responses.create({ ...body, input: [...messages, call, given] });
    expect(next.output_text).toBe(again.output_text);
  });
});

const create = (body: object) => open().chat.completions.create({ model: writer, messages, ...body });
const format = (schema: object) => ({ type: 'json_schema', json_schema: { name: 'x', schema } });

it('OpenAI SDK structured output: reports unsupported schemas, tools and grammars by parameter', async () => {
  const refused = create({ response_format: format({ type: 'array', contains: {} }) });
  await expect(refused).rejects.toBeInstanceOf(BadRequestError);
  await expect(refused).rejects.toMatchObject({
    param: 'response_format.json_schema.schema',
    message: expect.stringContaining('schema.contains') as string,
  });
  await expect(create({ tools })).rejects.toMatchObject({ status: 400, param: 'tools' });
  await expect(create({ model: blockWriter, response_format: { type: 'json_object' } })).rejects.toMatchObject({
    status: 400,
    param: 'response_format',
  });
  await expect(create({ grammar: 'root ::= (' })).rejects.toMatchObject({ status: 400, param: 'grammar' });
});

describe('OpenAI SDK with tools and a schema in one request', () => {
  it('chat completions return either calls or an object of the schema', async () => {
    const strict = tools.map((tool) => ({ ...tool, function: { ...tool.function, strict: true } }));
    const request = { model: caller, messages, tools: strict, max_completion_tokens: 100, temperature: 2, n: 10 };
    const format = zodResponseFormat(image, 'image');
    for (const seed of [1, 2]) {
      const { choices } = await open().chat.completions.create({ ...request, seed, response_format: format });
      const ended = choices.filter(({ finish_reason: reason }) => reason !== 'length');
      expect(ended.map(({ message }) => callOrObject(message.tool_calls, message.content))).toEqual(
        ended.map(({ finish_reason: reason }) => (reason === 'tool_calls' ? 'call' : 'object')),
      );
    }
    const required = await open().chat.completions.create({
      ...request,
      n: 1,
      tool_choice: 'required',
      response_format: format,
    });
    expect(required.choices[0]!.message.content).toBeNull();
    const none = await open().chat.completions.parse({
      ...request,
      n: 1,
      tool_choice: 'none',
      response_format: format,
    });
    expect(none.choices[0]!.message.parsed).toBeTypeOf('object');
    const empty = await open().chat.completions.parse({
      ...request,
      n: 1,
      tools: [],
      tool_choice: 'auto',
      response_format: format,
    });
    expect(empty.choices[0]!.message.parsed).toBeTypeOf('object');
  });

  it('responses return either calls or an object of the schema', async () => {
    const request = { model: caller, input: 'something sweet', temperature: 2, max_output_tokens: 100 };
    const functions = tools.map(({ function: { name } }) => ({
      type: 'function' as const,
      name,
      parameters,
      strict: true,
    }));
    for (const seed of [1, 2, 3]) {
      const more = { seed } as object;
      const { output, status } = await open().responses.create({
        ...request,
        ...more,
        tools: functions,
        text: { format: zodTextFormat(image, 'p') },
      });
      const calls = output.filter((item) => item.type === 'function_call');
      const [message] = output.filter((item) => item.type === 'message');
      const text = message?.content.map((part) => ('text' in part ? part.text : '')).join('') ?? null;
      const chatCalls = calls.map((call) => ({ function: { arguments: call.arguments } }));
      expect(status === 'incomplete' ? 'cut' : callOrObject(chatCalls, text)).toMatch(/^(cut|call|object)$/);
    }
  });
});

/** Tells calls and objects of the schema apart. Throws if the answer is neither. */
function callOrObject(calls: readonly object[] | undefined, content: string | null): 'call' | 'object' {
  const called = z.object({ function: z.object({ arguments: z.string() }) });
  const color = z.strictObject({ color: z.enum(['red', 'blue']) });
  if (calls !== undefined && calls.length > 0 && content === null) {
    for (const call of calls) color.parse(JSON.parse(called.parse(call).function.arguments));
    return 'call';
  }
  image.parse(JSON.parse(content!));
  return 'object';
}
