import { z } from '@hono/zod-openapi';

/** Tokens are not counted here: a picture costs steps. OpenAI's clients want the fields, so they are 0. */
export const imageUsageSchema = z
  .strictObject({
    input_tokens: z.literal(0),
    output_tokens: z.literal(0),
    total_tokens: z.literal(0),
    input_tokens_details: z.strictObject({ text_tokens: z.literal(0), image_tokens: z.literal(0) }),
    steps: z.int().min(1).openapi({ description: 'Steps of all pictures.', example: 20 }),
  })
  .openapi('ImageUsage', { description: 'Tokens are not counted: a picture costs steps.' });

export function imageUsage(steps: number): z.infer<typeof imageUsageSchema> {
  const input_tokens_details = { text_tokens: 0, image_tokens: 0 } as const;
  return { input_tokens: 0, output_tokens: 0, total_tokens: 0, input_tokens_details, steps };
}
