import { z } from 'zod';
import { checkSameTokens, type DenoiserFacts } from './denoiser-facts.ts';
import { checkModelJson, count, misfitError, modelFileError, readModelJson, unsupported } from '../model-file.ts';
import type { PipelineFamily } from '../pipeline-classes.ts';
import type { TextEncoderFiles } from './text-encoder-files.ts';

const configFile = 'unet/config.json';

/** The families whose denoiser is a UNet. */
type UnetFamily = Extract<PipelineFamily, 'stable-diffusion' | 'latent-consistency' | 'stable-diffusion-xl'>;

/** The fields of diffusers' file that a pipeline goes by. All others are let through unread. */
const schemaOf = (family: UnetFamily) =>
  z.looseObject({
    _diffusers_version: z.string().default(''),
    in_channels: count,
    /** Latent pixels: one side, or height and width. */
    sample_size: z.union([count, z.tuple([count, count])]),
    block_out_channels: z.array(count).min(1),
    /** Width of what the text encoder gives. */
    cross_attention_dim: count.default(1280),
    class_embed_type: unsupported,
    time_cond_proj_dim:
      family === 'latent-consistency'
        ? z.int({ error: 'is the width of the guidance embedding, which this class has' }).min(4)
        : unsupported,
    addition_embed_type: family === 'stable-diffusion-xl' ? z.literal('text_time') : unsupported,
  });

const timeIdsSchema = z.looseObject({
  /** What one time id is embedded in. */
  addition_time_embed_dim: count,
  /** Width of the pooled embedding and of all time ids together. */
  projection_class_embeddings_input_dim: count,
});

/** Reads the configuration of a UNet and checks that it fits the text encoders. */
export async function readUnetFacts(
  directory: string,
  family: UnetFamily,
  textEncoders: readonly TextEncoderFiles[],
): Promise<DenoiserFacts> {
  const json = await readModelJson(directory, configFile);
  const unet = checkModelJson(configFile, json, schemaOf(family));
  checkSameTokens(textEncoders);
  checkWidths(textEncoders, unet.cross_attention_dim);
  if (family === 'stable-diffusion-xl') checkTimeIds(textEncoders, json);
  const { sample_size: size, _diffusers_version: version } = unet;
  // The first files of Stable Diffusion 1.x say 32, which StableDiffusionPipeline does not believe, either.
  const least = family === 'stable-diffusion' && /^0\.[0-8]\./.test(version) ? 64 : 0;
  return {
    configFile,
    inChannels: unet.in_channels,
    sampleSize: typeof size === 'number' ? [Math.max(size, least), Math.max(size, least)] : size,
    // It halves the latents once between two levels, and an odd side would not come back to its size.
    multiple: 2 ** (unet.block_out_channels.length - 1),
    embeddingWidth: unet.cross_attention_dim,
    guidanceWidth: unet.time_cond_proj_dim ?? undefined,
  };
}

/** Texts are read by all encoders, and what they give lies side by side. */
function checkWidths(textEncoders: readonly TextEncoderFiles[], given: number): void {
  const widths = textEncoders.map(({ width }) => width ?? Number.NaN);
  const sum = widths.reduce((total, width) => total + width, 0);
  // One without a config.json is tried only.
  if (sum === given || Number.isNaN(sum)) return;
  const configs = textEncoders.map((_, at) => `text_encoder${at === 0 ? '' : `_${at + 1}`}/config.json`).join(' and ');
  throw misfitError(configFile, 'cross_attention_dim', given, `${sum}, the hidden_size of ${configs}`);
}

/** The base model of SDXL has six. Its refiner has five, with a score in place of the target size. */
function checkTimeIds(textEncoders: readonly TextEncoderFiles[], json: unknown): void {
  const config = checkModelJson(configFile, json, timeIdsSchema);
  const { addition_time_embed_dim: timeWidth, projection_class_embeddings_input_dim: given } = config;
  const { pooledWidth } = textEncoders[1]!;
  if (pooledWidth === undefined) throw modelFileError('text_encoder_2/config.json', 'projection_dim: is missing');
  const sum = 6 * timeWidth + pooledWidth;
  if (sum === given) return;
  const parts = `six time ids of ${timeWidth} and the projection_dim of text_encoder_2/config.json, ${pooledWidth}`;
  throw misfitError(configFile, 'projection_class_embeddings_input_dim', given, `${sum}: ${parts}`);
}
