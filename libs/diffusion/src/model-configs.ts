import { z } from 'zod';

/** The fields of diffusers' files that a latent diffusion pipeline goes by. All others are let through unread. */

const count = z.number().int().min(1);
/** A field that must be null or absent: what it turns on is not implemented, and leaving it out would be another picture. */
const unsupported = z.null({ error: 'is not supported' }).optional();

export const modelIndexSchema = z.looseObject({ _class_name: z.string() }).transform((index) => index['_class_name']);

export const unetConfigSchema = z.looseObject({
  in_channels: count,
  /** Latent pixels: one side, or height and width. */
  sample_size: z.union([count, z.tuple([count, count])]),
  block_out_channels: z.array(count).min(1),
  /** Width of what the text encoder gives. */
  cross_attention_dim: count.default(1280),
  time_cond_proj_dim: unsupported,
  addition_embed_type: unsupported,
  class_embed_type: unsupported,
});

export const textEncoderConfigSchema = z.looseObject({
  /** Ids that there are embeddings for: all below this. */
  vocab_size: count,
  max_position_embeddings: count,
  hidden_size: count,
});

export type TextEncoderConfig = z.infer<typeof textEncoderConfigSchema>;

export const vaeConfigSchema = z.looseObject({
  latent_channels: count,
  block_out_channels: z.array(count).min(1),
  scaling_factor: z.number().positive().default(0.18215),
  shift_factor: z.number().nullish(),
  latents_mean: unsupported,
  latents_std: unsupported,
});
