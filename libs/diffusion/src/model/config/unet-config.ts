import { itemAt } from '@darkroom/core';
import { z } from 'zod';
import { checkSameTokens, type DenoiserConfig } from './denoiser-config.ts';
import {
  checkModelJson,
  positiveInteger,
  misfitError,
  modelFileError,
  readModelJson,
  unsupported,
} from '@darkroom/runtime/model-file';
import type { PipelineFamily } from './pipeline-classes.ts';
import type { TextEncoders } from './text-encoder-files.ts';

const configFile = 'unet/config.json';

/** Families whose denoiser is a UNet. */
type UnetFamily = Extract<PipelineFamily, 'stable-diffusion' | 'latent-consistency' | 'stable-diffusion-xl'>;

/** The fields of diffusers' config that pipelines need. Other fields are ignored. */
const schemaOf = (family: UnetFamily) =>
  z.looseObject({
    _diffusers_version: z.string().default(''),
    in_channels: positiveInteger,
    /** Size of the latents: one side, or height and width. */
    sample_size: z.union([positiveInteger, z.tuple([positiveInteger, positiveInteger])]),
    block_out_channels: z.array(positiveInteger).min(1),
    /** Width of the text encoder's output. */
    cross_attention_dim: positiveInteger.default(1280),
    class_embed_type: unsupported,
    time_cond_proj_dim:
      family === 'latent-consistency'
        ? z.int({ error: 'expected the width of the guidance embedding, at least 4' }).min(4)
        : unsupported,
    addition_embed_type: family === 'stable-diffusion-xl' ? z.literal('text_time') : unsupported,
  });

const timeIdsSchema = z.looseObject({
  /** Embedding width of one time id. */
  addition_time_embed_dim: positiveInteger,
  /** Width of the pooled embedding plus all time ids. */
  projection_class_embeddings_input_dim: positiveInteger,
});

/** Reads the configuration of a UNet and checks that it fits the text encoders. */
export async function readUnetConfig(
  directory: string,
  family: UnetFamily,
  textEncoders: TextEncoders,
): Promise<DenoiserConfig> {
  const json = await readModelJson(directory, configFile);
  const unet = checkModelJson(configFile, json, schemaOf(family));
  checkSameTokens(textEncoders);
  checkWidths(textEncoders, unet.cross_attention_dim);
  if (family === 'stable-diffusion-xl') checkTimeIds(textEncoders, json);
  const { sample_size: size, _diffusers_version: version } = unet;
  // The first Stable Diffusion 1.x files say 32, which is wrong; StableDiffusionPipeline ignores it, too.
  const minSide = family === 'stable-diffusion' && /^0\.[0-8]\./.test(version) ? 64 : 0;
  return {
    configFile,
    inChannels: unet.in_channels,
    sampleSize: typeof size === 'number' ? [Math.max(size, minSide), Math.max(size, minSide)] : size,
    // Each level halves the latents; an odd side would not come back to its size.
    multiple: 2 ** (unet.block_out_channels.length - 1),
    embeddingWidth: unet.cross_attention_dim,
    guidanceWidth: unet.time_cond_proj_dim ?? undefined,
  };
}

/** Checks that the encoders' widths add up: every encoder reads the text, and their outputs are concatenated. */
function checkWidths(textEncoders: TextEncoders, given: number): void {
  const widths = textEncoders.map(({ width }) => width ?? Number.NaN);
  const sum = widths.reduce((total, width) => total + width, 0);
  // Without a config.json, the width is only checked by the trial call.
  if (sum === given || Number.isNaN(sum)) return;
  const configs = textEncoders.map((_, at) => `text_encoder${at === 0 ? '' : `_${at + 1}`}/config.json`).join(' and ');
  throw misfitError(configFile, 'cross_attention_dim', given, `${sum}, the hidden_size of ${configs}`);
}

/**
 * Checks the number of time ids: six in SDXL's base model. Its refiner has five, with a score instead of the target
 * size.
 */
function checkTimeIds(textEncoders: TextEncoders, json: unknown): void {
  const config = checkModelJson(configFile, json, timeIdsSchema);
  const { addition_time_embed_dim: timeWidth, projection_class_embeddings_input_dim: given } = config;
  const { pooledWidth } = itemAt(textEncoders, 1);
  if (pooledWidth === undefined) throw modelFileError('text_encoder_2/config.json', 'projection_dim: is missing');
  const sum = 6 * timeWidth + pooledWidth;
  if (sum === given) return;
  const parts = `six time ids of ${timeWidth} and the projection_dim of text_encoder_2/config.json, ${pooledWidth}`;
  throw misfitError(configFile, 'projection_class_embeddings_input_dim', given, `${sum}: ${parts}`);
}
