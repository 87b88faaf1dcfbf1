/** The body of `POST /v1/responses`: what OpenAI's clients send, and fields of `POST /v1/predict` beside it. */
import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import { foreignTextFields, textOf, textSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../http/api-error.ts';
import { choiceProblems, formFieldName, formFields, ourForm } from './response-form.ts';

const maxMetadata = 16;
const maxMetadataName = 64;
const maxMetadataText = 512;

const trueOrFalse = z.boolean({ error: 'true or false' }).optional();
const metadataExpected = `an object of at most ${maxMetadata} texts of at most ${maxMetadataText} characters, by names of at most ${maxMetadataName}`;
const anyText = z.string({ error: 'text' }).optional();

/** As `POST /v1/predict` has them; the model says what they may be. */
const {
  prompt: _prompt,
  messages: _messages,
  max_tokens: maxTokens,
  n: _n,
  logprobs: _logprobs,
  ...ours
} = textSchema.shape;
const {
  top_logprobs: _topLogprobs,
  response_format: _format,
  tools: _tools,
  tool_choice: _choice,
  parallel_tool_calls: _parallel,
  ...textFields
} = ours;

/** A field for what is not here: takes what asks for nothing. */
function nothing(values: readonly [unknown, ...unknown[]], reason: string): z.ZodType {
  const shown = values.map((value) => JSON.stringify(value)).join(' or ');
  return z
    .unknown()
    .refine((value) => values.some((each) => JSON.stringify(each) === JSON.stringify(value)), {
      error: `${shown}: ${reason}`,
    })
    .optional()
    .openapi({ description: `Only ${shown}: ${reason}.`, enum: [...new Set([...values, null])] });
}

const probabilitiesElsewhere = 'probabilities of tokens are at /v1/predict';

const ownFields = {
  input: z.union([z.string(), z.array(z.looseObject({}))]).openapi({
    description:
      'Text, or a list of messages {"role", "content"} whose content is text or a list of parts {"type": "input_text", "text"} (`output_text` in what was answered before). Calls of functions and what they gave are items {"type": "function_call", "call_id", "name", "arguments"} and {"type": "function_call_output", "call_id", "output"}. An item {"type": "item_reference", "id"} stands for a message or a call of a response that is kept.',
    example: 'something sweet',
  }),
  instructions: anyText.openapi({ description: 'A system message in front of all others.' }),
  max_output_tokens: maxTokens,
  stream: trueOrFalse.openapi({ description: 'Server-sent events. Default: false.' }),
  background: trueOrFalse.openapi({
    description: 'Answers at once, and going away cancels nothing. Default: false.',
  }),
  store: trueOrFalse.openapi({
    description:
      'Whether `GET /v1/responses/{id}` knows it. It is kept for as long as any request, and no longer. Default: true.',
  }),
  metadata: z
    .record(z.string().max(maxMetadataName), textOf(0, maxMetadataText), { error: metadataExpected })
    .refine((metadata) => Object.keys(metadata).length <= maxMetadata, { error: metadataExpected })
    .optional()
    .openapi({ description: 'Comes back as it is. Default: {}.' }),
  previous_response_id: anyText.openapi({
    description: 'What was said in that response stands before the input, without its instructions.',
  }),
  user: anyText.openapi({ description: 'Ignored, and kept nowhere.' }),
  stream_options: z
    .looseObject({}, { error: 'an object' })
    .optional()
    .openapi({ description: 'Only with `stream: true`; events are not padded.' }),
  ...formFields,
  logprobs: nothing([false], probabilitiesElsewhere),
  top_logprobs: nothing([0], probabilitiesElsewhere),
  n: nothing([1], 'a response is one text'),
  max_tokens: nothing([null], 'send max_output_tokens instead'),
  include: z
    .array(z.literal('reasoning.encrypted_content', { error: 'reasoning.encrypted_content, of which there is none' }), {
      error: 'a list',
    })
    .optional()
    .openapi({ description: 'For clients that always send it: there is nothing to include.' }),
  truncation: nothing(['disabled'], 'a conversation is never cut'),
  conversation: nothing([null], 'send previous_response_id instead'),
  prompt: nothing([null], 'there are no templates here, send input instead'),
};

/** Loose: what nobody here knows is for others. */
const schema = z.looseObject({ ...ownFields, input: z.unknown().optional() });

/** As it stands in the document: SDKs of OpenAI may send null for what has a default. */
export const responsesBodySchema = z
  .looseObject({
    input: ownFields.input,
    ...Object.fromEntries(
      Object.entries({ ...ownFields, ...textFields })
        .filter(([name]) => name !== 'input')
        .map(([name, field]) => [name, field.nullable()]),
    ),
  })
  .openapi('ResponsesRequest');

const names: Readonly<Record<string, string>> = { max_tokens: 'max_output_tokens', messages: 'input', prompt: 'input' };

/** How our fields are called here. */
export function responsesName(field: string): string {
  return names[field] ?? (field.startsWith('messages.') ? 'input' : formFieldName(field));
}

export type ResponsesBody = ReturnType<typeof parseResponsesBody>;

/** What this route makes of a body. Throws 400 with all that is wrong with its own fields; the rest is for who knows the model. */
export function parseResponsesBody(body: unknown) {
  const given = withoutNulls(body);
  const { data, error } = schema.safeParse(given);
  if (error !== undefined) {
    const options = { body: given, known: Object.keys(ownFields), foreignNames: foreignTextFields };
    throw invalidFields(fieldProblems(error.issues, options));
  }
  const problems = [...combinationProblems(data), ...choiceProblems(data)];
  if (problems.length > 0) throw invalidFields(problems);
  const { stream = false, background = false, store = true, metadata = {}, ...fields } = data;
  return {
    stream,
    input: fields.input,
    instructions: fields.instructions,
    previousResponseId: fields.previous_response_id,
    maxOutputTokens: fields.max_output_tokens,
    shown: { background, store, metadata },
    /** For `submitRequest`, which checks them. */
    rest: {
      ...Object.fromEntries(Object.entries(data).filter(([name]) => Object.hasOwn(textFields, name))),
      ...ourForm(data),
    },
  };
}

function withoutNulls(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** Fields that would silently do nothing. */
function combinationProblems({ stream, background, store, stream_options }: z.infer<typeof schema>): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (stream_options !== undefined && stream !== true)
    problems.push(invalidValue('stream_options', stream_options, 'none without stream: true'));
  if (background === true && store === false)
    problems.push(invalidValue('background', true, 'false with store: false, for nobody could ask for it'));
  return problems;
}
