import { z } from 'zod';
import type { LoraCard } from './image-input.ts';

/** Schema of an adapter in `/v1/models`. */
export const loraSchema = z.strictObject({
  id: z.string(),
  rank: z.int().min(0),
  name: z.string().optional().meta({ description: 'File name, if it cannot be the id.' }),
  left_out: z.array(z.string()).optional().meta({
    description:
      'Parts of the adapter that are ignored, such as `text_encoder`, because that part of the model does not support adapters.',
  }),
});

export function loraView({ id, rank, name, leftOut }: LoraCard): z.output<typeof loraSchema> {
  return {
    id,
    rank,
    ...(name !== undefined && { name }),
    ...(leftOut !== undefined && { left_out: [...leftOut] }),
  };
}
