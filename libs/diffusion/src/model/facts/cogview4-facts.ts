import { z } from 'zod';
import type { DenoiserFacts } from './denoiser-facts.ts';
import { count, misfitError, modelFileError, readModelConfig } from '../model-file.ts';
import type { TextEncoderFiles } from './text-encoder-files.ts';

const configFile = 'transformer/config.json';

/** With the defaults of diffusers' `CogView4Transformer2DModel`. All other fields are let through unread. */
const schema = z.looseObject({
  in_channels: count.default(16),
  /** Side of the squares that are one token each. */
  patch_size: count.default(2),
  sample_size: count.default(128),
  text_embed_dim: count.default(4096),
});

/** Reads the configuration of CogView4's transformer and checks that it fits the text encoder. */
export async function readCogView4Facts(
  directory: string,
  [encoder]: readonly TextEncoderFiles[],
): Promise<DenoiserFacts> {
  const config = await readModelConfig(directory, configFile, schema);
  const { width, layers } = encoder!;
  // The layer that is read is found by their number.
  if (width === undefined) throw modelFileError('text_encoder/config.json', 'is missing');
  if (layers === undefined) throw modelFileError('text_encoder/config.json', 'num_hidden_layers: is missing');
  const given = config.text_embed_dim;
  const expected = `${width}, the hidden_size of text_encoder/config.json`;
  if (given !== width) throw misfitError(configFile, 'text_embed_dim', given, expected);
  return {
    configFile,
    inChannels: config.in_channels,
    sampleSize: [config.sample_size, config.sample_size],
    multiple: config.patch_size,
    embeddingWidth: width,
  };
}
