/** What the two routes of text have in common: fields of their bodies, and how they stand in the OpenAPI document. */
import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import { textSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidField, invalidFields } from '../../http/api-error.ts';
import { errorAnswer, type RouteDocument } from '../../http/api-route.ts';
import { submitHeaders } from '../../submit/submit-document.ts';
import { answerErrors, requestIdHeader } from '../../follow/answer-document.ts';

/** As `POST /v1/predict` has them; the model says what they may be. */
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
  max_nfe: true,
  confidence_threshold: true,
  tokens_per_step: true,
}).shape;

const trueOrFalse = 'true or false';
const streamOptionsExpected = 'an object such as {"include_usage": true}';

/** Fields of both routes that no other has. */
export const askFields = {
  max_completion_tokens: textFields.max_tokens
    .clone()
    .meta({ description: 'Goes before `max_tokens`, and means the same.' }),
  stream: z.boolean({ error: trueOrFalse }).optional().meta({ description: 'Server-sent events. Default: false.' }),
  stream_options: z
    .looseObject({ include_usage: z.boolean({ error: trueOrFalse }).nullish() }, { error: streamOptionsExpected })
    .optional()
    .meta({ description: 'Only with `stream: true`. `include_usage`: one more chunk at the end, with `usage`.' }),
  user: z.unknown().optional().meta({ description: 'Ignored, and kept nowhere.' }),
};

/** Checks made here; the model's own come later, with those of `textFields`. */
const checkedFields = { stream: askFields.stream, stream_options: askFields.stream_options };

/** As it stands in the document: other fields are accepted, and null is the default of what is not `required`. */
export function textBodySchema(name: string, required: z.ZodRawShape, more: z.ZodRawShape) {
  const others = Object.entries({ ...textFields, ...askFields, ...more });
  const nullable = others.map(([field, schema]) => [field, (schema as z.ZodType).nullable()]);
  return z.looseObject({ ...required, ...Object.fromEntries(nullable) }).openapi(name);
}

/** The fields that a route itself reads. Throws 400 with all that is wrong; null is as if it were not there. */
export function readAskFields<Shape extends z.ZodRawShape>(shape: Shape, body: unknown) {
  const given = withoutNulls(body);
  const parsed = z.looseObject({ ...checkedFields, ...shape }).safeParse(given);
  if (!parsed.success) throw invalidFields(fieldProblems(parsed.error.issues, { body: given, known: [] }));
  return parsed.data;
}

function withoutNulls(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** What goes together only. */
export function streamProblems({ stream, stream_options: options }: AskFields): FieldProblem[] {
  if (stream === true || options === undefined) return [];
  return [invalidValue('stream_options', options, 'nothing without "stream": true')];
}

type AskFields = { [field: string]: unknown } & z.infer<z.ZodObject<typeof checkedFields>>;

/** Our fields of a body, and what of them the client calls otherwise. */
export function ourFields(fields: AskFields): { body: Record<string, unknown>; names: Record<string, string> } {
  const body = Object.fromEntries(
    Object.keys(textFields).flatMap((name) => (name in fields ? [[name, fields[name]]] : [])),
  );
  const { max_completion_tokens: tokens } = fields;
  if (tokens === undefined) return { body, names: {} };
  return { body: { ...body, max_tokens: tokens }, names: { max_tokens: 'max_completion_tokens' } };
}

export function streamOf({ stream = false, stream_options: options }: AskFields) {
  return { isStream: stream, includesUsage: options?.include_usage === true };
}

const count = z.int().min(0);

export const usageSchema = z
  .strictObject({
    prompt_tokens: count,
    completion_tokens: count.openapi({ description: 'Of all choices, each with the token that ended it.' }),
    total_tokens: count,
    prompt_tokens_details: z.strictObject({ cached_tokens: count }),
    nfe: count.openapi({ description: 'Calls of the model after the prompt.' }),
  })
  .openapi('TextUsage');

export const finishReason = z
  .enum(['stop', 'length'])
  .openapi({ description: '`stop`: an end token, a stop text or the end of its form; `length`: max_tokens.' });

/** What every answer has beside its choices. */
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
  summary: string;
  description: string;
  body: { schema: z.ZodType; example: object };
  answer: z.ZodType;
  /** Frames of a stream. */
  stream: string;
}

/** What is true of both routes, for people. */
const aboutBoth = `\`null\` in a field is its default, and fields that are not known are ignored.
With \`stream: true\` server-sent events come, \`data: [DONE]\` at the end, and a comment every 15 s. The headers go out with the first
piece, or with the first comment where that takes longer: what goes wrong before is an answer with a status, and what goes wrong after it is \`data: {"error": …}\`, the last one.

**A client that goes away cancels its request**, streaming or not, unless it sent an \`Idempotency-Key\`: then it may come back for
it. After the request is stored no answer is a 5xx, and none makes an SDK send it a second time: the error is a 422.`;

export function textDocument(options: TextDocument): RouteDocument {
  const { path, summary, description, body, answer, stream } = options;
  return {
    method: 'post',
    path,
    summary,
    description: `${description}\n${aboutBoth}`,
    request: {
      headers: submitHeaders.pick({ 'idempotency-key': true }),
      body: { required: true, content: { 'application/json': body } },
    },
    responses: {
      ...answerErrors('text'),
      200: {
        description: 'The answer, or the chunks.',
        headers: requestIdHeader,
        content: {
          'application/json': { schema: answer },
          // Without a schema: tools hold each event against it, and OpenAPI 3.1 has no other for the items of a stream.
          'text/event-stream': { example: stream },
        },
      },
      400: errorAnswer(
        'A field is wrong, or prompt and answer are longer than the model (`context_length_exceeded`).',
        invalidField('top_p', 2, 'a number above 0, at most 1'),
      ),
    },
  };
}
