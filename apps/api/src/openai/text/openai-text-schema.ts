/** Request fields and OpenAPI documents that chat and completions share. */
import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import { textSchema, withoutNulls } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidField, invalidFields } from '../../http/api-error.ts';
import { describeErrorAnswer, type RouteDocument } from '../../openapi/api-route.ts';
import { submitHeaders } from '../../openapi/submit-document.ts';
import { answerErrors, requestIdHeader } from '../../openapi/answer-document.ts';
import { refusedProblems, responseFields } from './peer-fields.ts';
import { formFieldNames, peerForm } from './peer-forms.ts';

/** Fields shared with `POST /v1/predict`. The model's card limits their values. */
export const textFields = textSchema.pick({
  model: true,
  max_tokens: true,
  temperature: true,
  top_p: true,
  top_k: true,
  min_p: true,
  presence_penalty: true,
  frequency_penalty: true,
  logit_bias: true,
  n: true,
  seed: true,
  stop: true,
  ignore_eos: true,
  response_format: true,
  grammar: true,
  regex: true,
  max_nfe: true,
  confidence_threshold: true,
  tokens_per_step: true,
}).shape;

const trueOrFalse = 'true or false';
const streamOptionsExpected = 'an object such as {"include_usage": true}';

/** Fields that only chat and completions have. */
export const openaiRequestFields = {
  max_completion_tokens: textFields.max_tokens
    .clone()
    .meta({ description: 'Same as `max_tokens`, and takes precedence over it.' }),
  stream: z.boolean({ error: trueOrFalse }).optional().meta({ description: 'Server-sent events. Default: false.' }),
  stream_options: z
    .looseObject({ include_usage: z.boolean({ error: trueOrFalse }).nullish() }, { error: streamOptionsExpected })
    .optional()
    .meta({ description: 'Only with `stream: true`. `include_usage` adds a last chunk with `usage`.' }),
  user: z.unknown().optional().meta({ description: 'Ignored and not stored.' }),
};

/** Fields that the routes check themselves. `submitRequest` checks `textFields` against the model. */
const checkedFields = { stream: openaiRequestFields.stream, stream_options: openaiRequestFields.stream_options };

/** Returns the body's schema for the OpenAPI document. Unknown fields are accepted. */
export function createTextBodySchema(name: string, required: z.ZodRawShape, more: z.ZodRawShape) {
  return z.looseObject({ ...required, ...textFields, ...openaiRequestFields, ...more }).openapi(name);
}

/** Parses the fields that a route itself reads; null means absent. Throws 400 with all problems. */
export function parseRequestFields<Shape extends z.ZodRawShape>(shape: Shape, body: unknown) {
  const schema = z.looseObject({ ...checkedFields, ...shape });
  const given = withoutNulls(schema, body);
  const parsed = schema.safeParse(given);
  if (!parsed.success) throw invalidFields(fieldProblems(parsed.error.issues, { body: given, known: [] }));
  return parsed.data;
}

/** Reports `stream_options` without `stream: true`. */
export function streamProblems({ stream, stream_options: options }: RequestFields): FieldProblem[] {
  if (stream === true || options === undefined) return [];
  return [invalidValue('stream_options', options, 'nothing without "stream": true')];
}

type RequestFields = { [field: string]: unknown } & z.infer<z.ZodObject<typeof checkedFields>>;

/** Converts a body to our fields; `names` has the client's names if they differ. Adds refused fields to `problems`. */
export function toOurFields(
  fields: RequestFields,
  problems: FieldProblem[],
): { body: Record<string, unknown>; names: Record<string, string> } {
  problems.push(...refusedProblems(fields), ...refusedProblems(fields, responseFields));
  const { form, names } = peerForm(fields, problems);
  const plain = Object.keys(textFields).filter((name) => name in fields && !formFieldNames.includes(name));
  const body = { ...Object.fromEntries(plain.map((name) => [name, fields[name]])), ...form };
  const { max_completion_tokens: tokens } = fields;
  if (tokens === undefined) return { body, names };
  return { body: { ...body, max_tokens: tokens }, names: { ...names, max_tokens: 'max_completion_tokens' } };
}

export function readStreamOptions({ stream = false, stream_options: options }: RequestFields) {
  return { isStream: stream, includesUsage: options?.include_usage === true };
}

const count = z.int().min(0);

export const usageSchema = z
  .strictObject({
    prompt_tokens: count,
    completion_tokens: count.openapi({ description: 'Tokens of all choices, including end tokens.' }),
    total_tokens: count,
    prompt_tokens_details: z.strictObject({ cached_tokens: count }),
    nfe: count.openapi({ description: 'Number of function evaluations: model calls after the prompt.' }),
  })
  .openapi('TextUsage');

export const finishReason = z.enum(['stop', 'length']).openapi({
  description: '`stop`: an end token, a stop text or the end of the required format; `length`: max_tokens.',
});

/** Returns the schemas of the fields of an answer, except `choices`. */
export function answerFields(object: string, idPrefix: string) {
  return {
    id: z.string().openapi({ example: `${idPrefix}emoji-writer-01kaj3v0q8f3zt6m0c9d7p2xwe` }),
    object: z.literal(object),
    created: z.int().openapi({ description: 'Seconds since the epoch.', example: 1_795_225_246 }),
    model: z.string(),
    usage: usageSchema,
  };
}

interface TextDocument {
  path: string;
  operationId: string;
  summary: string;
  description: string;
  body: { schema: z.ZodType; example: object };
  answer: z.ZodType;
  /** Example of a stream. */
  stream: string;
}

/** Part of the OpenAPI descriptions that both routes share. */
const sharedDescription = `\`null\` in a field means its default; unknown fields are ignored. The fields of vLLM, llama.cpp and SGLang for structured output
(\`guided_json\`, \`structured_outputs\`, \`json_schema\`, \`regex\`, \`ebnf\`, …) are supported; their other fields that would change the answer return a 400 that names them.

With \`stream: true\` the answer is a stream of server-sent events that ends with \`data: [DONE]\`, with a comment every 15 s as a heartbeat.
The headers are sent with the first chunk or heartbeat. Errors before that have a status; a later error is the last event, \`data: {"error": …}\`.

**Disconnecting cancels the request**, streaming or not, unless the client sent an \`Idempotency-Key\`,
with which it can fetch the result later. After the request is stored, errors are 422, never 5xx, so that SDKs do not send it again.`;

export function textDocument(options: TextDocument): RouteDocument {
  const { path, operationId, summary, description, body, answer, stream } = options;
  return {
    method: 'post',
    path,
    operationId,
    tag: 'Chat and text',
    summary,
    description: `${description}\n${sharedDescription}`,
    request: {
      headers: submitHeaders.pick({ 'idempotency-key': true }),
      body: { required: true, content: { 'application/json': body } },
    },
    responses: {
      ...answerErrors('text'),
      200: {
        description: 'The answer, or a stream of chunks.',
        headers: requestIdHeader,
        content: {
          'application/json': { schema: answer },
          // No schema: tools would validate each event against it, and OpenAPI 3.1 has no schema for items of a stream.
          'text/event-stream': { example: stream },
        },
      },
      400: describeErrorAnswer(
        'A field is wrong, or prompt and answer exceed the context length of the model (`context_length_exceeded`).',
        invalidField('top_p', 2, 'a number above 0, at most 1'),
      ),
    },
  };
}
