/** Response fields of text requests and models, for the OpenAPI document and for tests. */
import { z } from 'zod';
import { toolCallSchema } from './form/tool-call-view.ts';
import { textSchema } from './text-schema.ts';

const count = z.int().min(0);

/** Fields of a request in addition to its result. */
export const textRequestShape = {
  tokens: count.meta({ description: 'Tokens written, over all texts of the request.' }),
  progress: z
    .number()
    .min(0)
    .max(1)
    .meta({ description: 'Share of max_tokens generated so far; 1 if the request has succeeded.' }),
  seed: count,
  texts: z
    .array(
      z.strictObject({
        index: count,
        text: z.string(),
        tool_calls: z
          .array(toolCallSchema)
          .optional()
          .meta({ description: 'Tool calls in the text, if there are any.' }),
      }),
    )
    .meta({ description: 'The texts so far; complete once the request has ended.' }),
  parameters: textSchema
    .omit({
      priority: true,
      timeout_s: true,
      start_timeout_s: true,
      webhook_url: true,
      webhook_events: true,
      user: true,
      metadata: true,
    })
    .required({ model: true, n: true, seed: true })
    .extend({
      prompt: z
        .union([z.array(count), z.string()])
        .nullable()
        .meta({
          description:
            'Token ids; for a model that another server runs, the prompt as sent. Null with `messages`, and once the request has ended if the server does not retain prompts.',
        }),
    })
    .meta({
      description:
        'A body that reproduces the same texts. For a model that another server runs, only the fields that were sent.',
    }),
};

export const textResultShape = {
  usage: z.strictObject({
    prompt_tokens: count,
    completion_tokens: count.meta({
      description: 'Tokens generated so far, if the request is running or was canceled.',
    }),
    total_tokens: count,
    cached_tokens: count.meta({ description: 'Prompt tokens that were in the cache.' }),
    nfe: count.meta({ description: 'Model calls after the prompt, of finished texts.' }),
  }),
  finish_reasons: z.array(z.enum(['stop', 'length'])).meta({ description: 'One per finished text.' }),
};

/** Fields of a model. */
export const textModelShape = {
  mode: z.enum(['autoregressive', 'block_diffusion']),
  max_model_len: count.optional().meta({ description: 'Maximum tokens of prompt and output together, if known.' }),
  vocabulary_size: count.optional(),
  has_chat_template: z.boolean().meta({ description: 'Whether the model takes `messages`.' }),
  images: z
    .strictObject({ min: count, max: count })
    .optional()
    .meta({ description: 'Images per request. With a minimum of 1, the model answers questions about images only.' }),
  takes: z.array(z.literal('image')).optional().meta({
    description: '["image"] if messages may have images, else []. Absent if only the server that runs the model knows.',
  }),
  has_tools: z
    .boolean()
    .optional()
    .meta({ description: 'Whether the model calls tools. Absent if only the server that runs the model knows.' }),
  deterministic: z
    .boolean()
    .meta({ description: 'Whether a text has the same bytes regardless of the requests in its batch.' }),
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
    .meta({ description: 'Absent for a model that another server runs: that server applies its own.' }),
};
