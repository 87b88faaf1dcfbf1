import { z } from 'zod';
import { positiveInteger, readModelConfig, unsupported } from '@darkroom/runtime/model-file';

/** The latents' layout and scaling, from the VAE's configuration. */
export interface LatentConfig {
  readonly channels: number;
  /** Pixels per latent, in each direction. */
  readonly factor: number;
  /** Before decoding, latents are divided by this and `shiftFactor` is added. */
  readonly scalingFactor: number;
  readonly shiftFactor: number;
}

const schema = z.looseObject({
  latent_channels: positiveInteger,
  block_out_channels: z.array(positiveInteger).min(1),
  scaling_factor: z.number().positive().default(0.18215),
  shift_factor: z.number().nullish(),
  latents_mean: unsupported,
  latents_std: unsupported,
});

/** Reads a VAE's configuration. @throws DarkroomError `model_unsupported` naming the file and the field. */
export async function readLatentConfig(directory: string): Promise<LatentConfig> {
  const vae = await readModelConfig(directory, 'vae_decoder/config.json', schema);
  return {
    channels: vae.latent_channels,
    factor: 2 ** (vae.block_out_channels.length - 1),
    scalingFactor: vae.scaling_factor,
    shiftFactor: vae.shift_factor ?? 0,
  };
}
