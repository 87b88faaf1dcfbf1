import { checkSameTokens } from './check-same-tokens.ts';
import type { DenoiserFacts } from './denoiser-facts.ts';
import { type UnetConfig, unetConfigSchemas, type UnetFamily } from '../model-configs.ts';
import { checkModelJson, modelFileError, readModelJson } from '../model-file.ts';
import type { TextEncoderFiles } from './text-encoder-files.ts';

const configFile = 'unet/config.json';

/**
 * Reads the configuration of a UNet and checks that it fits the text encoders.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readUnetFacts(
  directory: string,
  family: UnetFamily,
  textEncoders: readonly TextEncoderFiles[],
): Promise<DenoiserFacts> {
  const unet = checkModelJson(configFile, await readModelJson(directory, configFile), unetConfigSchemas[family]);
  checkSameTokens(textEncoders);
  checkWidths(textEncoders, unet);
  if (family === 'stable-diffusion-xl') checkTimeIds(textEncoders, unet);
  return {
    configFile,
    inChannels: unet.in_channels,
    sampleSize: sampleSizeOf(family, unet),
    // It halves the latents once between two levels, and an odd side would not come back to its size.
    multiple: 2 ** (unet.block_out_channels.length - 1),
    embeddingWidth: unet.cross_attention_dim,
    guidanceWidth: unet.time_cond_proj_dim ?? undefined,
  };
}

function sampleSizeOf(family: UnetFamily, unet: UnetConfig): DenoiserFacts['sampleSize'] {
  const { sample_size: size, _diffusers_version: version = '' } = unet;
  if (typeof size !== 'number') return size;
  // The first files of Stable Diffusion 1.x say 32, which StableDiffusionPipeline does not believe, either.
  const side = family === 'stable-diffusion' && /^0\.[0-8]\./.test(version) ? Math.max(size, 64) : size;
  return [side, side];
}

/** Texts are read by all encoders, and what they give lies side by side. */
function checkWidths(textEncoders: readonly TextEncoderFiles[], { cross_attention_dim: given }: UnetConfig): void {
  let expected = 0;
  for (const { width } of textEncoders) {
    if (width === undefined) return;
    expected += width;
  }
  if (expected === given) return;
  const configs = textEncoders.map((_, at) => `text_encoder${at === 0 ? '' : `_${at + 1}`}/config.json`).join(' and ');
  const problem = `cross_attention_dim: is ${given}, expected ${expected}, the hidden_size of ${configs}`;
  throw modelFileError(configFile, problem);
}

/** The base model of SDXL has six. Its refiner has five, with a score in place of the target size. */
function checkTimeIds(textEncoders: readonly TextEncoderFiles[], unet: UnetConfig): void {
  const { addition_time_embed_dim: timeWidth = 0, projection_class_embeddings_input_dim: given } = unet;
  const { pooledWidth } = textEncoders[1]!;
  if (pooledWidth === undefined) throw modelFileError('text_encoder_2/config.json', 'projection_dim: is missing');
  const expected = 6 * timeWidth + pooledWidth;
  if (expected === given) return;
  const parts = `six time ids of ${timeWidth} and the projection_dim of text_encoder_2/config.json, ${pooledWidth}`;
  const problem = `projection_class_embeddings_input_dim: is ${given}, expected ${expected}: ${parts}`;
  throw modelFileError(configFile, problem);
}
