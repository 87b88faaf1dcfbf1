import { itemAt } from '@darkroom/core';
import { z } from 'zod';
import { checkSameTokens, type DenoiserConfig } from './denoiser-config.ts';
import { positiveInteger, misfitError, modelFileError, readModelConfig } from '@darkroom/runtime/model-file';
import type { TextEncoderFiles, TextEncoders } from './text-encoder-files.ts';

const configFile = 'transformer/config.json';

/** Defaults are those of diffusers' `SD3Transformer2DModel`. Other fields are ignored. */
const schema = z.looseObject({
  in_channels: positiveInteger.default(16),
  /** Side of the latents. */
  sample_size: positiveInteger.default(128),
  /** Side of the square of latents that makes one token. */
  patch_size: positiveInteger.default(2),
  /** Maximum patches per side that have position embeddings. */
  pos_embed_max_size: positiveInteger.default(96),
  /** Width of the text embedding per token. */
  joint_attention_dim: positiveInteger.default(4096),
  /** Width of the pooled text embedding. */
  pooled_projection_dim: positiveInteger.default(2048),
});

/**
 * Reads the configuration of Stable Diffusion 3's transformer and checks that it fits the text encoders: two CLIPs and
 * an optional T5.
 */
export async function readStableDiffusion3Config(
  directory: string,
  textEncoders: TextEncoders,
): Promise<DenoiserConfig> {
  const transformer = await readModelConfig(directory, configFile, schema);
  const [clip, , t5] = textEncoders;
  const clip2 = itemAt(textEncoders, 1);
  checkSameTokens([clip, clip2]);
  checkWidths([clip, clip2, t5], transformer);
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

type Encoders = readonly [clip: TextEncoderFiles, clip2: TextEncoderFiles, t5: TextEncoderFiles | undefined];

/** Checks the text widths. Per token, the two CLIP embeddings are concatenated and padded with zeros to T5's width. */
function checkWidths([clip, clip2, t5]: Encoders, transformer: z.infer<typeof schema>): void {
  const { joint_attention_dim: given, pooled_projection_dim: givenPooled } = transformer;
  const ofBoth = 'of text_encoder/config.json and text_encoder_2/config.json';
  const minWidth = (clip.width ?? 0) + (clip2.width ?? 0);
  if (minWidth > given) {
    throw misfitError(configFile, 'joint_attention_dim', given, `at least ${minWidth}, the hidden_size ${ofBoth}`);
  }
  const pooled = pooledWidthOf(clip) + pooledWidthOf(clip2);
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
