/** Structured output and tool calls with both providers of the Vercel AI SDK and with LangChain. */
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import {
  generateObject,
  generateText,
  type LanguageModel,
  Output,
  stepCountIs,
  streamObject,
  streamText,
  tool,
} from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { caller } from './caller-model.ts';
import { useSharedSystem, writer } from './shared-system.ts';

const system = useSharedSystem();

const prompt = 'something sweet for a birthday party';
const schema = z.object({
  thing: z.enum(['cake', 'fox', 'house']),
  colors: z
    .array(z.enum(['red', 'blue', 'pink']))
    .min(1)
    .max(2),
});
const colorSchema = z.object({ color: z.enum(['red', 'blue']) });

const providers: Record<string, (model: string) => LanguageModel> = {
  'chat completions': (model) =>
    createOpenAICompatible({
      name: 'darkroom',
      baseURL: `${system.url}/v1`,
      supportsStructuredOutputs: true,
    })(model),
  responses: (model) => createOpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' })(model),
};

describe.each(Object.entries(providers))('the Vercel AI SDK over %s', (_name, modelOf) => {
  it('generates an object that matches the schema, and streams the same object', async () => {
    const request = { model: modelOf(writer), prompt, schema, maxOutputTokens: 100 };
    const { object } = await generateObject(request);
    expect(schema.parse(object)).toEqual(object);
    const streamed: unknown[] = [];
    const countPartials = async (): Promise<number> => {
      const stream = streamObject(request);
      const partial: unknown[] = [];
      for await (const part of stream.partialObjectStream) partial.push(part);
      streamed.push(await stream.object, partial.at(-1));
      return partial.length;
    };
    // If the model ends before the stream is read, there is a single partial object: repeat until there are more.
    await expect.poll(countPartials).toBeGreaterThan(1);
    for (const each of streamed) expect(each).toEqual(object);
  });

  it('returns valid tool calls or a valid object if a request has both tools and a schema', async () => {
    const tools = {
      draw: tool({ description: 'Draws.', inputSchema: colorSchema, execute: ({ color }) => `drawn in ${color}` }),
    };
    const request = {
      model: modelOf(caller),
      prompt,
      tools,
      output: Output.object({ schema }),
      maxOutputTokens: 100,
      temperature: 2,
    };
    for (const seed of [1, 2, 3, 4]) {
      const result = await generateText({ ...request, seed });
      // `maxOutputTokens` may cut the last call. The provider for responses sends no seed, so any run may meet this.
      const calls = result.finishReason === 'length' ? result.toolCalls.slice(0, -1) : result.toolCalls;
      const callsValid = calls.map(({ input }) => colorSchema.safeParse(input).success);
      const outputValid = () => [schema.safeParse(result.output).success];
      const isObject = result.finishReason === 'stop';
      expect(isObject ? outputValid() : callsValid).toEqual((isObject ? [0] : callsValid).map(() => true));
    }
    const none = await generateText({ ...request, seed: 1, toolChoice: 'none' });
    expect(none.toolCalls).toEqual([]);
  });

  it('calls a tool and continues with its result', async () => {
    const colors: string[] = [];
    const tools = {
      draw: tool({
        description: 'Draws.',
        inputSchema: colorSchema,
        execute: ({ color }) => {
          colors.push(color);
          return 'drawn';
        },
      }),
    };
    const { steps, finishReason } = await generateText({
      model: modelOf(caller),
      prompt,
      tools,
      maxOutputTokens: 200,
      stopWhen: stepCountIs(2),
      prepareStep: ({ stepNumber }) => ({
        toolChoice: stepNumber === 0 ? { type: 'tool', toolName: 'draw' } : 'none',
      }),
    });
    expect(steps).toHaveLength(2);
    expect(steps[0]!.finishReason).toBe('tool-calls');
    expect(steps[0]!.toolCalls).toHaveLength(1);
    expect(colors).toEqual(steps[0]!.toolCalls.map(({ input }) => (input as z.infer<typeof colorSchema>).color));
    expect(steps[1]!.toolCalls).toEqual([]);
    expect(['stop', 'length']).toContain(finishReason);
  });

  it('streams tool calls', async () => {
    const tools = { draw: tool({ description: 'Draws.', inputSchema: colorSchema, execute: () => 'drawn' }) };
    const stream = streamText({
      model: modelOf(caller),
      prompt,
      tools,
      toolChoice: { type: 'tool', toolName: 'draw' },
      maxOutputTokens: 200,
    });
    const types: string[] = [];
    let json = '';
    for await (const part of stream.fullStream) {
      types.push(part.type);
      if (part.type === 'tool-input-delta') json += part.delta;
    }
    const [call] = await stream.toolCalls;
    expect(call).toMatchObject({ toolName: 'draw', input: JSON.parse(json) as object });
    expect(types).not.toContain('text-delta');
    expect(types).not.toContain('error');
    expect(await stream.finishReason).toBe('tool-calls');
  });
});

describe.each([false, true])('LangChain with useResponsesApi: %s', (useResponsesApi) => {
  const chatOf = (model: string) =>
    new ChatOpenAI({
      model,
      apiKey: 'none',
      maxRetries: 0,
      maxTokens: 200,
      useResponsesApi,
      configuration: { baseURL: `${system.url}/v1` },
    });

  it('returns structured output that matches the schema', async () => {
    const object = await chatOf(writer).withStructuredOutput(schema, { method: 'jsonSchema' }).invoke(prompt);
    expect(schema.parse(object)).toEqual(object);
  });

  it('calls a tool and continues with its result', async () => {
    const draw = {
      type: 'function' as const,
      function: { name: 'draw', description: 'Draws.', parameters: z.toJSONSchema(colorSchema) },
    };
    const chat = chatOf(caller).bindTools([draw], { tool_choice: 'draw' });
    const human = new HumanMessage(prompt);
    const message = await chat.invoke([human]);
    const [call] = message.tool_calls!;
    expect(call!.name).toBe('draw');
    expect(colorSchema.parse(call!.args)).toEqual(call!.args);
    const toolMessage = new ToolMessage({ content: 'drawn', tool_call_id: call!.id! });
    const next = await chatOf(caller).invoke([human, message, toolMessage]);
    expect(typeof next.text).toBe('string');
  });

  it('streams tool calls', async () => {
    const draw = { type: 'function' as const, function: { name: 'draw', parameters: z.toJSONSchema(colorSchema) } };
    const chat = chatOf(caller).bindTools([draw], { tool_choice: 'draw' });
    let json = '';
    for await (const chunk of await chat.stream(prompt))
      json += chunk.tool_call_chunks?.map(({ args }) => args ?? '').join('') ?? '';
    expect(colorSchema.parse(JSON.parse(json))).toBeDefined();
  });
});
