/**
 * Stable Diffusion 1.x and 2.x: a CLIP text encoder, a UNet with classifier-free guidance, and a VAE. Each row has its own
 * prompt, steps, guidance, scheduler and seed; rows of one size share the UNet call of a step.
 * Source: diffusers `StableDiffusionPipeline.__call__`, and those of `StableDiffusionImg2ImgPipeline` and
 * `StableDiffusionInpaintPipeline`, with a CPU generator and one seed a picture.
 *
 * Known limits: no clip skip.
 */
import { lastHiddenState } from '../graphs/prompt-encoder.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import type { PictureFamily } from '../picture/picture-pipeline.ts';

/** Of three graphs. */
export function stableDiffusion({ textEncoders, denoiser }: ModelDirectory): PictureFamily {
  const shape = [textEncoders[0]!.tokenizer.maxTokens, denoiser.embeddingWidth] as const;
  return {
    encoders: [{ outputs: ({ session }) => [lastHiddenState(session)], gives: () => [[1, ...shape]] }],
    inputs: { conditioning: { encoder_hidden_states: shape } },
    conditioningOf: ([embedding]) => ({ encoder_hidden_states: embedding! }),
  };
}
