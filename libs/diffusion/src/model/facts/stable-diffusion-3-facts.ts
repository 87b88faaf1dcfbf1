import { z } from 'zod';
import { checkSameTokens, type DenoiserFacts } from './denoiser-facts.ts';
import { count, misfitError, modelFileError, readModelConfig } from '../model-file.ts';
import type { TextEncoderFiles } from './text-encoder-files.ts';

const configFile = 'transformer/config.json';

/** With the defaults of diffusers' `SD3Transformer2DModel`. All other fields are let through unread. */
const schema = z.looseObject({
  in_channels: count.default(16),
  /** Latent pixels: one side. */
  sample_size: count.default(128),
  /** Latent pixels that make one token of the transformer, each way. */
  patch_size: count.default(2),
  /** Patches that it has positions for, each way. */
  pos_embed_max_size: count.default(96),
  /** Width of what the text encoders give for each token. */
  joint_attention_dim: count.default(4096),
  /** Width of what they give for the whole text. */
  pooled_projection_dim: count.default(2048),
});

/**
 * Reads the configuration of the transformer of Stable Diffusion 3 and checks that it fits the text encoders: two of CLIP,
 * and T5 where the model has it.
 */
export async function readStableDiffusion3Facts(
  directory: string,
  textEncoders: readonly TextEncoderFiles[],
): Promise<DenoiserFacts> {
  const transformer = await readModelConfig(directory, configFile, schema);
  checkSameTokens(textEncoders.slice(0, 2));
  checkWidths(textEncoders, transformer);
  const { sample_size: side, patch_size: patchSize, pos_embed_max_size: maxPatches } = transformer;
  const maxSide = maxPatches * patchSize;
  const expected = `at most ${maxSide}, pos_embed_max_size patches of patch_size`;
  if (side > maxSide) throw misfitError(configFile, 'sample_size', side, expected);
  return {
    configFile,
    inChannels: transformer.in_channels,
    sampleSize: [side, side],
    multiple: patchSize,
    maxSide,
    embeddingWidth: transformer.joint_attention_dim,
  };
}

/** What both CLIPs give lies side by side, for each token filled up with zeros, before the tokens of T5. */
function checkWidths([clip, clip2, t5]: readonly TextEncoderFiles[], transformer: z.infer<typeof schema>): void {
  const { joint_attention_dim: given, pooled_projection_dim: givenPooled } = transformer;
  const ofBoth = 'of text_encoder/config.json and text_encoder_2/config.json';
  const least = (clip!.width ?? 0) + (clip2!.width ?? 0);
  if (least > given) {
    throw misfitError(configFile, 'joint_attention_dim', given, `at least ${least}, the hidden_size ${ofBoth}`);
  }
  const pooled = pooledWidthOf(clip!) + pooledWidthOf(clip2!);
  if (pooled !== givenPooled) {
    const expected = `${pooled}, the projection_dim ${ofBoth}`;
    throw misfitError(configFile, 'pooled_projection_dim', givenPooled, expected);
  }
  if (t5?.width !== undefined && t5.width !== given) {
    const expected = `${t5.width}, the d_model of text_encoder_3/config.json`;
    throw misfitError(configFile, 'joint_attention_dim', given, expected);
  }
}

function pooledWidthOf({ tokenizer, pooledWidth }: TextEncoderFiles): number {
  if (pooledWidth !== undefined) return pooledWidth;
  const config = `${tokenizer.folder.replace('tokenizer', 'text_encoder')}/config.json`;
  throw modelFileError(config, 'projection_dim: is missing');
}
