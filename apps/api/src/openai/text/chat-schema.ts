/** The body and the answer of `POST /v1/chat/completions`. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import { textSchema, toolCallSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../../http/api-error.ts';
import type { TextAsk } from './answer-text.ts';
import {
  answerFields,
  ourFields,
  readAskFields,
  streamOf,
  streamProblems,
  textBodySchema,
  textDocument,
} from './openai-text-schema.ts';

const messagesExpected = 'a list of messages {"role", "content"}';

/** Of a message, as far as it is read here. */
const partSchema = z.looseObject({ type: z.literal('text'), text: z.string() });
const messageSchema = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(partSchema)]).nullish(),
});

const messages = z
  .array(messageSchema)
  .min(1)
  .meta({
    description:
      'What to answer, by the template of the model; `content` is text, or parts of type `text`. A message of the assistant may have none, and `tool_calls`; what a tool gave has the role `tool` and a `tool_call_id`.',
    example: [{ role: 'user', content: 'something sweet' }],
  });

/** As `POST /v1/predict` has them, and no other of OpenAI's routes. */
const chatFields = textSchema.pick({
  logprobs: true,
  top_logprobs: true,
  tools: true,
  tool_choice: true,
  parallel_tool_calls: true,
}).shape;

const bodySchema = textBodySchema('ChatRequest', { messages }, chatFields);

/** What this route makes of a body. Throws 400 with all that is wrong with what is read here. */
export function parseChatBody(body: unknown): TextAsk {
  const fields = readAskFields({ messages: z.array(z.unknown(), { error: messagesExpected }) }, body);
  const { messages: given } = fields;
  const problems = streamProblems(fields);
  const ours = given.map((message, index) => withTextContent(message, index, problems));
  if (problems.length > 0) throw invalidFields(problems);
  const { body: ourBody, names } = ourFields(fields);
  const asked = Object.fromEntries(Object.entries(fields).filter(([name]) => Object.hasOwn(chatFields, name)));
  return { body: { ...ourBody, ...asked, messages: ours }, names, ...streamOf(fields) };
}

/** A message with its content as one text; what it has of other kinds is named in `problems`. Templates know no developers. */
function withTextContent(message: unknown, index: number, problems: FieldProblem[]): unknown {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return message;
  const { role: given, content } = message as { role?: unknown; content?: unknown };
  const role = given === 'developer' ? 'system' : given;
  if (content == null && role === 'assistant') return { ...message, content: '' };
  if (!Array.isArray(content)) return { ...message, role };
  const field = `messages.${index}.content`;
  const texts = content.map((part, at) => partText(part, `${field}.${at}`, problems));
  if (content.length === 0) problems.push(invalidValue(field, content, 'text, or at least one part of type "text"'));
  return { ...message, role, content: texts.join('\n') };
}

function partText(part: unknown, field: string, problems: FieldProblem[]): string {
  const { type, text } = (typeof part === 'object' && part !== null ? part : {}) as { type?: unknown; text?: unknown };
  if (type === 'text' && typeof text === 'string') return text;
  problems.push(
    type === 'text'
      ? invalidValue(`${field}.text`, text, 'text')
      : invalidValue(`${field}.type`, type, '"text": the models here read nothing else'),
  );
  return '';
}

const chatFinishReason = z.enum(['stop', 'length', 'tool_calls']).openapi({
  description:
    '`stop`: an end token, a stop text or the end of its form; `length`: max_tokens; `tool_calls`: it waits for what they give.',
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
          content: z.string().nullable().openapi({ description: 'Null where there is nothing but calls.' }),
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

export const chatCompletionsDocument = textDocument({
  path: '/v1/chat/completions',
  summary: 'Have a message answered, as of OpenAI',
  description: "For OpenAI's SDKs: a view of a request as `POST /v1/predict` makes it, of a model of text.",
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
});
