/** What `POST /generate` takes and answers. */
import { fieldProblems } from '@darkroom/core';
import { foreignTextFields, textSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../http/api-error.ts';

/** What a piece of a stream is: what was added, or the block as it stands. */
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
}).shape;

const modeExpected = streamModes.map((mode) => `"${mode}"`).join(' or ');
const schema = z.strictObject({
  ...textFields,
  prompt: textFields.prompt.unwrap(),
  stream: z
    .boolean({ error: 'true or false' })
    .optional()
    .openapi({ description: 'Whether to answer with events as the text is written. Default: false.' }),
  stream_mode: z.enum(streamModes, { error: modeExpected }).optional().openapi({
    description:
      '`block_append`: what is added to the text and stays. `denoise`: each state of the block that is worked on; only of models of block diffusion. Default: block_append.',
  }),
});

export const generateBodySchema = schema.openapi('GenerateRequest');

/** What this route makes of a body. Throws 400 with all that is wrong; what is wrong with the text alone is said by who knows its model. */
export function parseGenerateBody(body: unknown): { text: object; isStream: boolean; mode: StreamMode } {
  const { data, error } = schema.safeParse(body);
  if (error !== undefined && error.issues.some(({ path: [name] }) => !isTextField(name)))
    throw invalidFields(
      fieldProblems(error.issues, { body, known: Object.keys(schema.shape), foreignNames: foreignTextFields }),
    );
  const { stream = false, stream_mode: mode = 'block_append', ...text } = data ?? (body as z.infer<typeof schema>);
  return { text, isStream: stream, mode };
}

/** The prompt is not: elsewhere messages may stand in its place. */
function isTextField(name: PropertyKey | undefined): boolean {
  return typeof name === 'string' && name !== 'prompt' && Object.hasOwn(textFields, name);
}

const count = z.int().min(0);
const ids = z.array(count);
const nfe = count.openapi({ description: 'Calls of the model after the prompt.' });

export const generateAnswerSchema = z
  .strictObject({
    full_text: z.string(),
    token_ids: ids.openapi({ description: 'Of all tokens but the end token and those of a stop text.' }),
    nfe,
    finish_reason: z.enum(['stop', 'length']),
  })
  .openapi('GenerateAnswer', {
    example: { full_text: 'a birthday cake', token_ids: [68, 967, 799], nfe: 4, finish_reason: 'stop' },
  });
export type GenerateAnswer = z.infer<typeof generateAnswerSchema>;

/** The data of the events `append` and `buffer_snapshot`; that of `final` is the answer. */
export interface AppendData {
  /** Tokens before it. */
  token_offset: number;
  text: string;
  token_ids: readonly number[];
  nfe: number;
  /** In the last one, which has no text, and in no other. */
  finished: boolean;
}

export interface BufferSnapshotData {
  /** Tokens before the block, and with it. */
  absolute_start: number;
  absolute_end: number;
  text: string;
  token_ids: readonly number[];
  nfe: number;
}
