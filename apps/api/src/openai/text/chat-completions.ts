/** `POST /v1/chat/completions` (OpenAI-compatible): a view of an ordinary request. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import { isImagePart, textSchema, toolCallSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../../http/api-error.ts';
import type { Route } from '../../openapi/api-route.ts';
import { answerText, type ParsedTextBody } from './answer-text.ts';
import {
  answerFields,
  toOurFields,
  parseRequestFields,
  readStreamOptions,
  streamProblems,
  createTextBodySchema,
  textDocument,
} from './openai-text-schema.ts';
import { completionFields, refusedProblems } from './peer-fields.ts';
import { chatShape } from './text-shape.ts';

const messagesExpected = 'a list of messages {"role", "content"}';

/** Parts of a message that this route reads; `withOurContent` reports all other parts by name. */
const partSchema = z.union([
  z.looseObject({ type: z.literal('text'), text: z.string() }),
  z.looseObject({
    type: z.literal('image_url'),
    image_url: z.looseObject({ url: z.string(), detail: z.enum(['auto', 'low', 'high']).optional() }),
  }),
]);
const messageSchema = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(partSchema)]).nullish(),
});

const messages = z
  .array(messageSchema)
  .min(1)
  .meta({
    description:
      'The conversation to answer, formatted by the model’s chat template. `content` is text or a list of parts of the types `text` and, for models whose `takes` has `image`, `image_url`. An assistant message with `tool_calls` needs no content; the result of a tool has the role `tool` and a `tool_call_id`.',
    example: [{ role: 'user', content: 'something sweet' }],
  });

/** Fields shared with `POST /v1/predict` that only this one of OpenAI's routes takes. */
const chatFields = textSchema.pick({
  logprobs: true,
  top_logprobs: true,
  tools: true,
  tool_choice: true,
  parallel_tool_calls: true,
}).shape;

const bodySchema = createTextBodySchema('ChatRequest', { messages }, chatFields);

/** Parses a request body. Throws 400 with all problems of the fields that this route reads itself. */
export function parseChatBody(body: unknown): ParsedTextBody {
  const fields = parseRequestFields({ messages: z.array(z.unknown(), { error: messagesExpected }) }, body);
  const { messages: given } = fields;
  const problems = streamProblems(fields);
  const ourMessages = given.map((message, index) => withOurContent(message, index, problems));
  const { body: ourBody, names } = toOurFields(fields, problems);
  problems.push(...refusedProblems(fields, completionFields));
  if (problems.length > 0) throw invalidFields(problems);
  const chatValues = Object.fromEntries(Object.entries(fields).filter(([name]) => Object.hasOwn(chatFields, name)));
  return { body: { ...ourBody, ...chatValues, messages: ourMessages }, names, ...readStreamOptions(fields) };
}

/**
 * Joins the text parts of a message without images; reports parts of other types. Replaces the role `developer`,
 * unknown to chat templates.
 */
function withOurContent(message: unknown, index: number, problems: FieldProblem[]): unknown {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return message;
  const { role: given, content } = message as { role?: unknown; content?: unknown };
  const role = given === 'developer' ? 'system' : given;
  if (content == null && role === 'assistant') return { ...message, content: '' };
  if (!Array.isArray(content)) return { ...message, role };
  const field = `messages.${index}.content`;
  if (content.length === 0) problems.push(invalidValue(field, content, 'text, or at least one part'));
  const texts = content.map((part, at) => (isImagePart(part) ? '' : partText(part, `${field}.${at}`, problems)));
  // The schema of texts checks the images.
  const ours = content.map((part: unknown, at) => (isImagePart(part) ? part : { type: 'text', text: texts[at] }));
  return { ...message, role, content: content.some(isImagePart) ? ours : texts.join('\n') };
}

function partText(part: unknown, field: string, problems: FieldProblem[]): string {
  const { type, text } = (typeof part === 'object' && part !== null ? part : {}) as { type?: unknown; text?: unknown };
  if (type === 'text' && typeof text === 'string') return text;
  problems.push(
    type === 'text'
      ? invalidValue(`${field}.text`, text, 'text')
      : invalidValue(`${field}.type`, type, '"text" or "image_url"'),
  );
  return '';
}

const chatFinishReason = z.enum(['stop', 'length', 'tool_calls']).openapi({
  description:
    '`stop`: an end token, a stop text or the end of the required format; `length`: max_tokens; `tool_calls`: the model called tools and waits for their results.',
});

const tokenShape = { token: z.string(), logprob: z.number(), bytes: z.array(z.int().min(0).max(255)) };
const tokenSchema = z.strictObject({ ...tokenShape, top_logprobs: z.array(z.strictObject(tokenShape)) });

export const chatAnswerSchema = z
  .strictObject({
    ...answerFields('chat.completion', 'chatcmpl-'),
    choices: z.array(
      z.strictObject({
        index: z.int().min(0),
        message: z.strictObject({
          role: z.literal('assistant'),
          content: z.string().nullable().openapi({ description: 'Null if the message contains only tool calls.' }),
          tool_calls: z.array(toolCallSchema).optional(),
          refusal: z.null(),
        }),
        logprobs: z.strictObject({ content: z.array(tokenSchema), refusal: z.null() }).nullable(),
        finish_reason: chatFinishReason,
      }),
    ),
  })
  .openapi('ChatAnswer');

const chunk = (choice: string) =>
  `data: {"id":"chatcmpl-…","object":"chat.completion.chunk","created":1795225246,"model":"emoji-writer","choices":[${choice}]}\n\n`;

export const chatCompletionsRoute: Route = {
  ...textDocument({
    path: '/v1/chat/completions',
    operationId: 'createChatCompletion',
    summary: 'Answer chat messages (OpenAI-compatible)',
    description: "For OpenAI's SDKs and text models: a view of a request such as `POST /v1/predict` creates.",
    body: {
      schema: bodySchema,
      example: { model: 'emoji-writer', messages: [{ role: 'user', content: 'something cold' }] },
    },
    answer: chatAnswerSchema,
    stream: [
      '{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}',
      '{"index":0,"delta":{"content":"an ice cream"},"logprobs":null,"finish_reason":null}',
      '{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}',
    ]
      .map((choice) => chunk(choice))
      .join(''),
  }),
  handle: (c, context) => answerText(c, context, parseChatBody, chatShape),
};
