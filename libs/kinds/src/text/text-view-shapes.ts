/** The fields of what clients see of texts, for the OpenAPI document and for tests. */
import { z } from 'zod';
import { toolCallSchema } from './form/tool-call-view.ts';
import { textSchema } from './text-schema.ts';

const count = z.int().min(0);

/** Of a request, beside its result. */
export const textRequestShape = {
  tokens: count.meta({ description: 'Tokens written, over all texts of the request.' }),
  progress: z.number().min(0).max(1).meta({ description: 'Of max_tokens; 1 when it has succeeded.' }),
  seed: count,
  texts: z
    .array(
      z.strictObject({
        index: count,
        text: z.string(),
        tool_calls: z
          .array(toolCallSchema)
          .optional()
          .meta({ description: 'Calls of tools in the text, if there are any.' }),
      }),
    )
    .meta({ description: 'What stands by now, and in the end.' }),
  parameters: textSchema
    .omit({
      priority: true,
      timeout_s: true,
      start_timeout_s: true,
      webhook_url: true,
      webhook_events: true,
    })
    .required({ model: true, n: true, seed: true })
    .extend({
      prompt: z
        .union([z.array(count), z.string()])
        .nullable()
        .meta({
          description:
            'Ids of tokens. Of a model that another server runs, what was sent; null beside `messages`. Null when the request has ended on a server that does not keep prompts.',
        }),
    })
    .meta({
      description:
        'All that made the texts, as a body that makes the same ones again. Of a model that another server runs only what was asked for.',
    }),
};

export const textResultShape = {
  usage: z.strictObject({
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    cached_tokens: count.meta({ description: 'Of the prompt, what an earlier request had left in the cache.' }),
    nfe: count.meta({ description: 'Calls of the model after the prompt.' }),
  }),
  finish_reasons: z.array(z.enum(['stop', 'length'])).meta({ description: 'One per finished text.' }),
};

/** Of a model. */
export const textModelShape = {
  mode: z.enum(['autoregressive', 'block_diffusion']),
  max_model_len: count.optional().meta({ description: 'Tokens that it reads and writes together, where it is known.' }),
  vocabulary_size: count.optional(),
  has_chat_template: z.boolean().meta({ description: 'Whether it takes `messages`.' }),
  has_tools: z
    .boolean()
    .optional()
    .meta({ description: 'Whether it calls tools. Absent where only the server that runs it knows.' }),
  deterministic: z.boolean().meta({ description: 'Whether a text has the same bytes whoever shares its steps.' }),
  deterministic_reason: z.string().optional(),
  block_size: count.optional(),
  defaults: z
    .strictObject({
      max_tokens: count,
      temperature: z.number(),
      top_p: z.number(),
      top_k: count,
      confidence_threshold: z.number().optional(),
    })
    .optional()
    .meta({ description: 'Absent of a model that another server runs: they are that server’s.' }),
};
