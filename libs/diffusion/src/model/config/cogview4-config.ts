import { z } from 'zod';
import type { DenoiserConfig } from './denoiser-config.ts';
import { positiveInteger, misfitError, modelFileError, readModelConfig } from '@darkroom/runtime/model-file';
import type { TextEncoders } from './text-encoder-files.ts';

const configFile = 'transformer/config.json';

/** Defaults are those of diffusers' `CogView4Transformer2DModel`. Other fields are ignored. */
const schema = z.looseObject({
  in_channels: positiveInteger.default(16),
  /** Side of the square patch that makes one token. */
  patch_size: positiveInteger.default(2),
  sample_size: positiveInteger.default(128),
  text_embed_dim: positiveInteger.default(4096),
});

/** Reads the configuration of CogView4's transformer and checks that it fits the text encoder. */
export async function readCogView4Config(directory: string, [encoder]: TextEncoders): Promise<DenoiserConfig> {
  const config = await readModelConfig(directory, configFile, schema);
  const { width, layers } = encoder;
  // The pipeline finds the layer it reads by the number of layers.
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
