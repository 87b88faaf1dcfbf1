/** Request body and answer of `POST /generate`. */
import { fieldProblems } from '@darkroom/core';
import { foreignTextFields, textSchema, withoutNulls } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../http/api-error.ts';
import { exampleId } from '../openapi/api-route.ts';
import { requestId } from '../openapi/api-schemas.ts';

/** Content of a stream's events: final text that was added, or the current state of the block. */
export const streamModes = ['block_append', 'denoise'] as const;
export type StreamMode = (typeof streamModes)[number];

const textFields = textSchema.pick({
  model: true,
  prompt: true,
  max_tokens: true,
  temperature: true,
  top_p: true,
  top_k: true,
  seed: true,
  stop: true,
  ignore_eos: true,
  max_nfe: true,
  confidence_threshold: true,
  tokens_per_step: true,
  priority: true,
  timeout_s: true,
  start_timeout_s: true,
  webhook_url: true,
  webhook_events: true,
  user: true,
  metadata: true,
}).shape;

const modeExpected = streamModes.map((mode) => `"${mode}"`).join(' or ');
const schema = z.strictObject({
  ...textFields,
  prompt: textFields.prompt.unwrap(),
  stream: z
    .boolean({ error: 'true or false' })
    .optional()
    .openapi({ description: 'Streams events as the text is written. Default: false.' }),
  stream_mode: z.enum(streamModes, { error: modeExpected }).optional().openapi({
    description:
      '`block_append`: final text as it is added. `denoise`: each state of the current block; only for block-diffusion models. Default: block_append.',
  }),
});

export const generateBodySchema = schema.openapi('GenerateRequest');

/** Parses a request body. Throws 400 with all problems. If only text fields are wrong, `submitRequest` reports them. */
export function parseGenerateBody(given: unknown): { text: object; isStream: boolean; mode: StreamMode } {
  const body = withoutNulls(schema, given);
  const { data, error } = schema.safeParse(body);
  if (error !== undefined && error.issues.some(({ path: [name] }) => !isTextField(name)))
    throw invalidFields(
      fieldProblems(error.issues, { body, known: Object.keys(schema.shape), compatNames: foreignTextFields }),
    );
  const { stream = false, stream_mode: mode = 'block_append', ...text } = data ?? (body as z.infer<typeof schema>);
  return { text, isStream: stream, mode };
}

/** Excludes `prompt`: this route requires it, while `submitRequest` would also accept messages. */
function isTextField(name: PropertyKey | undefined): boolean {
  return typeof name === 'string' && name !== 'prompt' && Object.hasOwn(textFields, name);
}

const count = z.int().min(0);
const ids = z.array(count);
const nfe = count.openapi({ description: 'Number of function evaluations: model calls after the prompt.' });

export const generateAnswerSchema = z
  .strictObject({
    full_text: z.string(),
    token_ids: ids.openapi({ description: 'Ids of all tokens except the end token and those of a stop text.' }),
    nfe,
    finish_reason: z.enum(['stop', 'length']),
    request_id: requestId,
  })
  .openapi('GenerateAnswer', {
    example: {
      full_text: 'a birthday cake',
      token_ids: [68, 967, 799],
      nfe: 4,
      finish_reason: 'stop',
      request_id: exampleId,
    },
  });
export type GenerateAnswer = z.infer<typeof generateAnswerSchema>;

/** Data of the event `append`. The data of `final` is the answer. */
export interface AppendData {
  /** Number of tokens before this text. */
  token_offset: number;
  text: string;
  token_ids: readonly number[];
  nfe: number;
  /** True only in the last event, which has no text. */
  finished: boolean;
  request_id: string;
}

/** Data of the event `buffer_snapshot`. */
export interface BufferSnapshotData {
  /** Number of tokens before the block, and up to its end. */
  absolute_start: number;
  absolute_end: number;
  text: string;
  token_ids: readonly number[];
  nfe: number;
  request_id: string;
}
