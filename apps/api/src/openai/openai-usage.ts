import type { OutputInfo } from '@darkroom/core';
import { promptCutView } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';

/** Tokens are not counted here: a picture costs steps. OpenAI's clients want the fields, so they are 0. */
export const imageUsageSchema = z
  .strictObject({
    input_tokens: z.literal(0),
    output_tokens: z.literal(0),
    total_tokens: z.literal(0),
    input_tokens_details: z.strictObject({ text_tokens: z.literal(0), image_tokens: z.literal(0) }),
    steps: z.int().min(1).openapi({ description: 'Steps of all pictures.', example: 20 }),
    prompt_tokens_cut: z.int().min(0).openapi({
      description: "Tokens at the prompt's end that the model did not read, as in `GET /v1/predict/{id}`.",
    }),
  })
  .openapi('ImageUsage', { description: 'Tokens are not counted: a picture costs steps.' });

/** @param outputs those that are done. */
export function imageUsage(steps: number, outputs: readonly OutputInfo[]): z.infer<typeof imageUsageSchema> {
  const prompt_tokens_cut = promptCutView(outputs).prompt_tokens_cut ?? 0;
  const input_tokens_details = { text_tokens: 0, image_tokens: 0 } as const;
  return { input_tokens: 0, output_tokens: 0, total_tokens: 0, input_tokens_details, steps, prompt_tokens_cut };
}
