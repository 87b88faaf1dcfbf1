import { z } from 'zod';
import { count, readModelConfig, unsupported } from '../model-file.ts';

/** The latents of a model, as its VAE has them. */
export interface LatentFacts {
  readonly channels: number;
  /** Pixels of the picture for one of the latents, each way. */
  readonly factor: number;
  /** Latents are divided by this, and `shiftFactor` added, before they are decoded. */
  readonly scalingFactor: number;
  readonly shiftFactor: number;
}

const schema = z.looseObject({
  latent_channels: count,
  block_out_channels: z.array(count).min(1),
  scaling_factor: z.number().positive().default(0.18215),
  shift_factor: z.number().nullish(),
  latents_mean: unsupported,
  latents_std: unsupported,
});

/** Reads the configuration of a VAE. @throws DarkroomError `model_unsupported` naming the file and the field. */
export async function readLatentFacts(directory: string): Promise<LatentFacts> {
  const vae = await readModelConfig(directory, 'vae_decoder/config.json', schema);
  return {
    channels: vae.latent_channels,
    factor: 2 ** (vae.block_out_channels.length - 1),
    scalingFactor: vae.scaling_factor,
    shiftFactor: vae.shift_factor ?? 0,
  };
}
