/** Request body of `POST /v1/responses`: OpenAI's fields and those of `POST /v1/predict`. */
import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import { foreignTextFields, textField, textSchema, withoutNulls } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../http/api-error.ts';
import { refusedProblems } from '../openai/text/peer-fields.ts';
import { formFieldNames } from '../openai/text/peer-forms.ts';
import { choiceProblems, formFieldName, responseFormFields, toOurFormFields } from './response-form.ts';

const maxMetadata = 16;
const maxMetadataName = 64;
const maxMetadataText = 512;

const trueOrFalse = z.boolean({ error: 'true or false' }).optional();
const metadataExpected = `an object of at most ${maxMetadata} texts of at most ${maxMetadataText} characters, by names of at most ${maxMetadataName}`;
const anyText = z.string({ error: 'text' }).optional();

/** Fields shared with `POST /v1/predict`. The model's card limits their values. */
const {
  prompt: _prompt,
  messages: _messages,
  max_tokens: maxTokens,
  n: _n,
  logprobs: _logprobs,
  ...ours
} = textSchema.shape;
const {
  top_logprobs: topLogprobs,
  response_format: _format,
  tools: _tools,
  tool_choice: _choice,
  parallel_tool_calls: _parallel,
  ...textFields
} = ours;

/** Creates a field for an unsupported feature, which accepts only the value without effect. */
function unsupportedField(value: string | number | boolean | null, reason: string) {
  const shown = JSON.stringify(value);
  return z
    .literal(value, { error: `${shown}: ${reason}` })
    .optional()
    .openapi({ description: `Only ${shown}: ${reason}.` });
}

const logprobsIncludable = 'message.output_text.logprobs';
const includables = ['reasoning.encrypted_content', logprobsIncludable] as const;

const ownFields = {
  input: z.union([z.string(), z.array(z.looseObject({}))]).openapi({
    description:
      'Text, or a list of messages {"role", "content"} whose content is text or a list of parts {"type": "input_text", "text"} (`output_text` in earlier answers). Function calls and their results are items {"type": "function_call", "call_id", "name", "arguments"} and {"type": "function_call_output", "call_id", "output"}. An item {"type": "item_reference", "id"} refers to a message or call of a stored response.',
    example: 'something sweet',
  }),
  instructions: anyText.openapi({ description: 'A system message before all other messages.' }),
  max_output_tokens: maxTokens,
  stream: trueOrFalse.openapi({ description: 'Server-sent events. Default: false.' }),
  background: trueOrFalse.openapi({
    description: 'Answers at once; disconnecting does not cancel the response. Default: false.',
  }),
  store: trueOrFalse.openapi({
    description:
      'Makes the response available at `GET /v1/responses/{id}`, until it expires like any request. Default: true.',
  }),
  metadata: z
    .record(z.string().max(maxMetadataName), textField(0, maxMetadataText), { error: metadataExpected })
    .refine((metadata) => Object.keys(metadata).length <= maxMetadata, { error: metadataExpected })
    .optional()
    .openapi({ description: 'Returned unchanged. Default: {}.' }),
  previous_response_id: anyText.openapi({
    description: 'Prepends the conversation of that response, without its instructions, to the input.',
  }),
  user: anyText.openapi({ description: 'Ignored and not stored.' }),
  stream_options: z
    .looseObject({}, { error: 'an object' })
    .optional()
    .openapi({ description: 'Only with `stream: true`; events are not padded.' }),
  ...responseFormFields,
  logprobs: unsupportedField(false, `send include: ["${logprobsIncludable}"] instead`),
  top_logprobs: topLogprobs,
  n: unsupportedField(1, 'a response has one text'),
  max_tokens: unsupportedField(null, 'send max_output_tokens instead'),
  include: z
    .array(z.enum(includables, { error: `one of ${includables.join(', ')}` }), { error: 'a list' })
    .optional()
    .openapi({
      description: `\`${logprobsIncludable}\`: log probabilities of each token and of \`top_logprobs\` alternatives. \`${includables[0]}\`: no effect; accepted because some clients always send it.`,
    }),
  truncation: unsupportedField('disabled', 'a conversation is never truncated'),
  conversation: unsupportedField(null, 'send previous_response_id instead'),
  prompt: unsupportedField(null, 'prompt templates are not supported, send input instead'),
};

/** Loose: unknown fields are ignored. */
const schema = z.looseObject({ ...ownFields, input: z.unknown().optional() });

/** Schema for the OpenAPI document. */
export const responsesBodySchema = z.looseObject({ ...textFields, ...ownFields }).openapi('ResponsesRequest');

const names: Readonly<Record<string, string>> = {
  max_tokens: 'max_output_tokens',
  messages: 'input',
  prompt: 'input',
  logprobs: 'include',
};

/** Returns the name of one of our fields in the responses API. */
export function responsesName(field: string): string {
  return names[field] ?? (field.startsWith('messages.') ? 'input' : formFieldName(field));
}

export type ResponsesBody = ReturnType<typeof parseResponsesBody>;

/** Parses a request body. Throws 400 with all problems of this route's fields; `submitRequest` checks `rest`. */
export function parseResponsesBody(body: unknown) {
  const given = withoutNulls(schema, body);
  const { data, error } = schema.safeParse(given);
  if (error !== undefined) {
    const options = { body: given, known: Object.keys(ownFields), compatNames: foreignTextFields };
    throw invalidFields(fieldProblems(error.issues, options));
  }
  const problems = [
    ...combinationProblems(data),
    ...choiceProblems(data),
    ...refusedProblems(data),
    ...formProblems(data),
  ];
  if (problems.length > 0) throw invalidFields(problems);
  const { stream = false, background = false, store = true, metadata = {}, ...fields } = data;
  return {
    stream,
    input: fields.input,
    instructions: fields.instructions,
    previousResponseId: fields.previous_response_id,
    maxOutputTokens: fields.max_output_tokens,
    metadata,
    shown: { background, store },
    /** Fields of the body for `submitRequest`, which checks them. */
    rest: {
      ...Object.fromEntries(Object.entries(data).filter(([name]) => Object.hasOwn(textFields, name))),
      ...toOurFormFields(data),
      ...(includesLogprobs(data) && { logprobs: true, top_logprobs: data.top_logprobs ?? 0 }),
    },
  };
}

function includesLogprobs({ include }: z.infer<typeof schema>): boolean {
  return include?.includes(logprobsIncludable) === true;
}

/** Reports the structured-output fields of other routes and servers. */
function formProblems(fields: Readonly<Record<string, unknown>>): FieldProblem[] {
  return formFieldNames
    .filter((field) => fields[field] != null && !Object.hasOwn(textFields, field))
    .map((field) => invalidValue(field, fields[field], 'nothing: send text.format'));
}

/** Reports combinations of fields that would have no effect. */
function combinationProblems(data: z.infer<typeof schema>): FieldProblem[] {
  const { stream, background, store, stream_options, top_logprobs: others = 0 } = data;
  const problems: FieldProblem[] = [];
  if (others !== 0 && !includesLogprobs(data))
    problems.push(invalidValue('top_logprobs', others, `0 without include: ["${logprobsIncludable}"]`));
  if (stream_options !== undefined && stream !== true)
    problems.push(invalidValue('stream_options', stream_options, 'none without stream: true'));
  if (background === true && store === false)
    problems.push(invalidValue('background', true, 'false with store: false: the response could not be retrieved'));
  return problems;
}
