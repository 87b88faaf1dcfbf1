import { fieldProblems } from '@darkroom/core';
import { compatImageFields, withoutNulls } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { imageBodySchema } from '../openapi/api-schemas.ts';
import { invalidFields } from '../http/api-error.ts';

/** Fields with the same name and meaning in all image APIs. */
const commonSchema = imageBodySchema.pick({
  prompt: true,
  negative_prompt: true,
  num_inference_steps: true,
  guidance_scale: true,
  seed: true,
});
export const commonFields = commonSchema.shape;

type CommonFields = z.infer<typeof commonSchema>;

/** Picks the common fields of a body. */
export function pickCommonFields(input: CommonFields): CommonFields {
  const { prompt, negative_prompt, num_inference_steps, guidance_scale, seed } = input;
  return { prompt, negative_prompt, num_inference_steps, guidance_scale, seed };
}

/** Creates a field for the name of a scheduler. `names` are examples for the OpenAPI document. */
export function schedulerField(names: readonly string[]) {
  const error = 'the name of a scheduler';
  return z
    .string({ error })
    .min(1, { error })
    .max(64, { error })
    .optional()
    .openapi({ description: `One of the model’s, or ${names.join(', ')}. Default: the model's.` });
}

/** Creates a field for an unsupported feature, which accepts only the value that disables it. */
export function unsupportedField<Value extends string | boolean | null>(value: Value, reason: string) {
  return z
    .literal(value, { error: `${JSON.stringify(value)}: ${reason}` })
    .optional()
    .openapi({ description: `Only ${JSON.stringify(value)}: ${reason}.` });
}

/** Parses a body; null means absent. Throws 400 with all problems. */
export function parseExternalBody<Schema extends z.ZodObject>(schema: Schema, body: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(withoutNulls(schema, body));
  if (parsed.success) return parsed.data;
  const known = Object.keys(schema.shape);
  throw invalidFields(fieldProblems(parsed.error.issues, { body, known, compatNames: compatImageFields }));
}
