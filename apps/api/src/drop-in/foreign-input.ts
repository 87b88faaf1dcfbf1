import { fieldProblems } from '@darkroom/core';
import { foreignPictureFields } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { pictureBodySchema } from '../v1/api-schemas.ts';
import { invalidFields } from '../http/api-error.ts';

/** Fields that have one name and one meaning wherever pictures are made. */
const commonSchema = pictureBodySchema.pick({
  prompt: true,
  negative_prompt: true,
  num_inference_steps: true,
  guidance_scale: true,
  seed: true,
});
export const commonFields = commonSchema.shape;

type CommonFields = z.infer<typeof commonSchema>;

/** What a body says in them. */
export function commonOf(input: CommonFields): CommonFields {
  const { prompt, negative_prompt, num_inference_steps, guidance_scale, seed } = input;
  return { prompt, negative_prompt, num_inference_steps, guidance_scale, seed };
}

/** A field for the name of a scheduler: one of ours, or what another API calls it. */
export function schedulerField(names: ReadonlyMap<string, string>) {
  const error = 'the name of a scheduler';
  return z
    .string({ error })
    .min(1, { error })
    .max(64, { error })
    .optional()
    .openapi({ description: `One of the model’s, or ${[...names.keys()].join(', ')}. Default: the model's.` });
}

/** A field for something that is not here: takes only the value that asks for nothing. */
export function without<Value extends string | boolean | null>(value: Value, reason: string) {
  return z
    .literal(value, { error: `${JSON.stringify(value)}: ${reason}` })
    .optional()
    .openapi({ description: `Only ${JSON.stringify(value)}: ${reason}.` });
}

/** Throws a 400 with all that is wrong. */
export function parseForeign<Schema extends z.ZodObject>(schema: Schema, body: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const known = Object.keys(schema.shape);
  throw invalidFields(fieldProblems(parsed.error.issues, { body, known, foreignNames: foreignPictureFields }));
}
