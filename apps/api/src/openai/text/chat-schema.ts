/** The body and the answer of `POST /v1/chat/completions`. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import { textSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../../http/api-error.ts';
import type { TextAsk } from './answer-text.ts';
import {
  answerFields,
  finishReason,
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
      'What to answer, by the template of the model; `content` is text, or parts of type `text`. A message of the assistant may have none.',
    example: [{ role: 'user', content: 'something sweet' }],
  });

const { logprobs, top_logprobs } = textSchema.shape;

const bodySchema = textBodySchema(
  'ChatRequest',
  { messages },
  {
    logprobs,
    top_logprobs,
    response_format: z
      .looseObject({ type: z.literal('text') })
      .optional()
      .meta({ description: 'Only text, for now.' }),
    tools: z.unknown().optional().meta({ description: 'None, for now.' }),
  },
);

/** What this route makes of a body. Throws 400 with all that is wrong with what is read here. */
export function parseChatBody(body: unknown): TextAsk {
  const fields = readAskFields({ messages: z.array(z.unknown(), { error: messagesExpected }) }, body);
  const { messages: given, logprobs: says, top_logprobs: others } = fields;
  const problems = [...streamProblems(fields), ...formatProblems(fields), ...toolProblems(fields)];
  const ours = given.map((message, index) => withTextContent(message, index, problems));
  if (problems.length > 0) throw invalidFields(problems);
  const { body: ourBody, names } = ourFields(fields);
  const asked = {
    ...(says !== undefined && { logprobs: says }),
    ...(others !== undefined && { top_logprobs: others }),
  };
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

type Fields = Readonly<Record<string, unknown>>;

/** Answers are not constrained here, so only text can be promised. */
function formatProblems({ response_format: format }: Fields): FieldProblem[] {
  if (format === undefined) return [];
  const field = 'response_format';
  if (typeof format !== 'object') return [invalidValue(field, format, 'an object such as {"type": "text"}')];
  const { type, json_schema: schema } = format as { type?: unknown; json_schema?: { schema?: unknown } | null };
  if (type === 'text') return [];
  if (type === 'json_schema' && typeof schema?.schema !== 'object')
    return [invalidValue(`${field}.json_schema.schema`, schema?.schema, 'a JSON Schema')];
  return [invalidValue(`${field}.type`, type, '"text": answers are not held to a format here')];
}

function toolProblems({ tools, tool_choice: choice }: Fields): FieldProblem[] {
  if (tools === undefined)
    return choice === undefined ? [] : [invalidValue('tool_choice', choice, 'nothing without tools')];
  if (!Array.isArray(tools) || tools.length === 0)
    return [invalidValue('tools', tools, 'a list of at least one tool, or nothing')];
  const names = tools.map((tool) => functionName(tool));
  if (typeof choice === 'object' && !names.includes(functionName(choice)))
    return [invalidValue('tool_choice.function.name', functionName(choice), `one of tools: ${names.join(', ')}`)];
  return [invalidValue('tools', tools, 'nothing: the models here call no tools')];
}

function functionName(tool: unknown): unknown {
  return (tool as { function?: { name?: unknown } | null } | null)?.function?.name;
}

const tokenShape = { token: z.string(), logprob: z.number(), bytes: z.array(z.int().min(0).max(255)) };
const tokenSchema = z.strictObject({ ...tokenShape, top_logprobs: z.array(z.strictObject(tokenShape)) });

export const chatAnswerSchema = z
  .strictObject({
    ...answerFields('chat.completion', 'chatcmpl-'),
    choices: z.array(
      z.strictObject({
        index: z.int().min(0),
        message: z.strictObject({ role: z.literal('assistant'), content: z.string(), refusal: z.null() }),
        logprobs: z.strictObject({ content: z.array(tokenSchema), refusal: z.null() }).nullable(),
        finish_reason: finishReason,
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
