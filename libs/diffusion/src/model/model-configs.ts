import { z } from 'zod';
import type { PipelineFamily, TokenizerKind } from './pipeline-classes.ts';

/** The fields of diffusers' files that a latent diffusion pipeline goes by. All others are let through unread. */

const count = z.number().int().min(1);
/** A field that must be null or absent: what it turns on is not implemented, and leaving it out would be another picture. */
const unsupported = z.null({ error: 'is not supported, expected null' }).optional();

export const modelIndexSchema = z.looseObject({
  _class_name: z.string(),
  force_zeros_for_empty_prompt: z.boolean().default(true),
});

const unetFields = {
  _diffusers_version: z.string().optional(),
  in_channels: count,
  /** Latent pixels: one side, or height and width. */
  sample_size: z.union([count, z.tuple([count, count])]),
  block_out_channels: z.array(count).min(1),
  /** Width of what the text encoder gives. */
  cross_attention_dim: count.default(1280),
  class_embed_type: unsupported,
};

/** What pipelines read of a UNet's config. */
export interface UnetConfig {
  _diffusers_version?: string | undefined;
  in_channels: number;
  sample_size: number | [number, number];
  block_out_channels: number[];
  cross_attention_dim: number;
  /** Width of the guidance embedding. */
  time_cond_proj_dim?: number | null | undefined;
  /** What one time id is embedded in. */
  addition_time_embed_dim?: number | undefined;
  /** Width of the pooled embedding and of all time ids together. */
  projection_class_embeddings_input_dim?: number | undefined;
}

/** The families whose denoiser is a UNet. */
export type UnetFamily = Extract<PipelineFamily, 'stable-diffusion' | 'latent-consistency' | 'stable-diffusion-xl'>;

export const unetConfigSchemas: Readonly<Record<UnetFamily, z.ZodType<UnetConfig>>> = {
  'stable-diffusion': z.looseObject({
    ...unetFields,
    time_cond_proj_dim: unsupported,
    addition_embed_type: unsupported,
  }),
  'latent-consistency': z.looseObject({
    ...unetFields,
    time_cond_proj_dim: z.int({ error: 'is the width of the guidance embedding, which this class has' }).min(4),
    addition_embed_type: unsupported,
  }),
  'stable-diffusion-xl': z.looseObject({
    ...unetFields,
    time_cond_proj_dim: unsupported,
    addition_embed_type: z.literal('text_time'),
    addition_time_embed_dim: count,
    projection_class_embeddings_input_dim: count,
  }),
};

/** What pipelines read of a text encoder's config. */
export interface TextEncoderConfig {
  /** Ids that there are embeddings for: all below this. */
  vocab_size: number;
  /** The longest text it reads; undefined where it has no table of positions. */
  max_position_embeddings?: number | undefined;
  hidden_size: number;
  /** Width of the pooled embedding, where the encoder has a projection. */
  projection_dim?: number | undefined;
  num_hidden_layers?: number | undefined;
}

const textEncoderConfigSchema = z.looseObject({
  vocab_size: count,
  max_position_embeddings: count,
  hidden_size: count,
  projection_dim: count.optional(),
  num_hidden_layers: count.optional(),
});

/** By the kind of the tokenizer that goes with the encoder. */
export const textEncoderConfigSchemas: Readonly<Record<TokenizerKind, z.ZodType<TextEncoderConfig>>> = {
  clip: textEncoderConfigSchema,
  glm: textEncoderConfigSchema,
  t5: z
    .looseObject({ vocab_size: count, d_model: count })
    .transform(({ vocab_size, d_model: hidden_size }) => ({ vocab_size, hidden_size })),
};

export const vaeConfigSchema = z.looseObject({
  latent_channels: count,
  block_out_channels: z.array(count).min(1),
  scaling_factor: z.number().positive().default(0.18215),
  shift_factor: z.number().nullish(),
  latents_mean: unsupported,
  latents_std: unsupported,
});

export type VaeConfig = z.infer<typeof vaeConfigSchema>;
