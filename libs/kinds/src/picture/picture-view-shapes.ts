/** The fields of what clients see of pictures, for the OpenAPI document and for tests. */
import { z } from 'zod';
import { pictureSchema } from './picture-schema.ts';

const count = z.int().min(0);
const pixels = z.int().min(1);
const range = z.strictObject({ min: z.number(), max: z.number() });

export const imageShape = {
  index: count,
  url: z.string().meta({ example: '/v1/predict/emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe/images/0' }),
  seed: count,
  width: pixels,
  height: pixels,
  content_type: z.string().meta({ example: 'image/png' }),
  bytes: count,
  b64_json: z.string().optional().meta({ description: 'The picture in base64, with `?images=inline`.' }),
};

const storedPrompt = z
  .string()
  .nullable()
  .meta({ description: 'Null when the request has ended on a server that does not keep prompts.' });

/** Of a request, beside `promptCutShape` and its images. */
export const pictureRequestShape = {
  step: count.meta({ description: 'Steps done, over all pictures of the request.' }),
  total_steps: count,
  progress: z.number().min(0).max(1),
  seed: count,
  seeds: z.array(count).meta({ description: 'One per picture.' }),
  parameters: pictureSchema
    .omit({ priority: true, timeout_s: true, start_timeout_s: true, webhook_url: true, webhook_events: true })
    .required()
    .extend({ prompt: storedPrompt, negative_prompt: storedPrompt })
    .meta({ description: 'All that made the pictures, as a body that makes the same ones again.' }),
};

export const promptCutShape = {
  prompt_tokens_cut: count.nullable().meta({
    description:
      "Tokens at the prompt's end that the model did not read, because it reads no more; of several text encoders " +
      'the one that reads the furthest counts. null before the first picture is done.',
  }),
  negative_prompt_tokens_cut: count
    .nullable()
    .meta({ description: 'The same of the negative prompt; 0 where guidance makes no use of it.' }),
};

/** Of a model. */
export const pictureModelShape = {
  sizes: z.strictObject({ multiple: pixels, min: pixels, max: pixels }),
  steps: range,
  guidance: range,
  schedulers: z.array(z.string()).meta({ description: 'What `scheduler` takes.' }),
  max_prompt_tokens: count,
  defaults: z.strictObject({
    size: z.string(),
    num_inference_steps: count,
    guidance_scale: z.number(),
    scheduler: z.string(),
  }),
};
