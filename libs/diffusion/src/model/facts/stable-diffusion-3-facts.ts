import { z } from 'zod';
import { checkSameTokens } from './check-same-tokens.ts';
import type { DenoiserFacts } from './denoiser-facts.ts';
import { checkModelJson, modelFileError, readModelJson } from '../model-file.ts';
import type { TextEncoderFiles } from './text-encoder-files.ts';

const configFile = 'transformer/config.json';

const count = z.number().int().min(1);

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

type TransformerConfig = z.infer<typeof schema>;

/**
 * Reads the configuration of the transformer of Stable Diffusion 3 and checks that it fits the text encoders: two of CLIP,
 * and T5 where the model has it.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readStableDiffusion3Facts(
  directory: string,
  textEncoders: readonly TextEncoderFiles[],
): Promise<DenoiserFacts> {
  const json = await readModelJson(directory, configFile);
  const transformer = checkModelJson(configFile, json, schema);
  const clips = textEncoders.slice(0, 2);
  checkSameTokens(clips);
  checkClipWidths(clips, transformer);
  checkPooledWidths(clips, transformer);
  checkT5Width(textEncoders[2], transformer);
  const { sample_size: side, patch_size: patchSize, pos_embed_max_size: maxPatches } = transformer;
  const maxSide = maxPatches * patchSize;
  if (side > maxSide) {
    const expected = `at most ${maxSide}, pos_embed_max_size patches of patch_size`;
    throw modelFileError(configFile, `sample_size: is ${side}, expected ${expected}`);
  }
  return {
    configFile,
    inChannels: transformer.in_channels,
    sampleSize: [side, side],
    multiple: patchSize,
    maxSide,
    embeddingWidth: transformer.joint_attention_dim,
  };
}

/** What both give lies side by side, and is filled up with zeros. */
function checkClipWidths(clips: readonly TextEncoderFiles[], { joint_attention_dim: given }: TransformerConfig): void {
  const least = clips.reduce((sum, { width = 0 }) => sum + width, 0);
  if (least <= given) return;
  const problem = `joint_attention_dim: is ${given}, expected at least ${least}`;
  throw modelFileError(
    configFile,
    `${problem}, the hidden_size of text_encoder/config.json and text_encoder_2/config.json`,
  );
}

function checkPooledWidths(
  clips: readonly TextEncoderFiles[],
  { pooled_projection_dim: given }: TransformerConfig,
): void {
  let expected = 0;
  for (const { tokenizer, pooledWidth } of clips) {
    if (pooledWidth === undefined) {
      const config = `${tokenizer.folder.replace('tokenizer', 'text_encoder')}/config.json`;
      throw modelFileError(config, 'projection_dim: is missing');
    }
    expected += pooledWidth;
  }
  if (expected === given) return;
  const problem = `pooled_projection_dim: is ${given}, expected ${expected}`;
  throw modelFileError(
    configFile,
    `${problem}, the projection_dim of text_encoder/config.json and text_encoder_2/config.json`,
  );
}

/** Its tokens follow those of the others. */
function checkT5Width(t5: TextEncoderFiles | undefined, { joint_attention_dim: given }: TransformerConfig): void {
  if (t5?.width === undefined || t5.width === given) return;
  const problem = `joint_attention_dim: is ${given}, expected ${t5.width}, the d_model of text_encoder_3/config.json`;
  throw modelFileError(configFile, problem);
}
