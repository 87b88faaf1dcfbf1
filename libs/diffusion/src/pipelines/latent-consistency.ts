/**
 * Latent consistency models: Stable Diffusion distilled to a few steps. The UNet is told the guidance, so that one row of
 * its batch is enough for a picture; negative prompts and guidance rescale are without effect.
 * Source: Luo et al. 2023, "Latent Consistency Models"; diffusers `LatentConsistencyModelPipeline.__call__` and
 * `LatentConsistencyModelImg2ImgPipeline.__call__`.
 *
 * Known limits: no clip skip, no masks, for which there is no pipeline.
 */
import type { ModelDirectory } from '../model/model-directory.ts';
import type { PictureFamily } from '../picture/picture-pipeline.ts';
import { stableDiffusion } from './stable-diffusion.ts';

/** Of three graphs: those of Stable Diffusion, with one more input. */
export function latentConsistency(model: ModelDirectory): PictureFamily {
  const { guidanceWidth = 0 } = model.denoiser;
  const { encoders, inputs, conditioningOf } = stableDiffusion(model);
  return {
    encoders,
    inputs: { conditioning: { ...inputs.conditioning, timestep_cond: [guidanceWidth] } },
    conditioningOf: (encoded, request) => ({
      ...conditioningOf(encoded, request),
      timestep_cond: embedGuidance(request.guidanceScale, guidanceWidth),
    }),
    isToldGuidance: true,
    // All steps are taken, of the less noisy timesteps.
    shorten: (_request, strength) => ({ distilledShare: strength }),
  };
}

/**
 * The guidance as the UNet reads it: sines and cosines of (guidance − 1) · 1000, in float32. The paper counts from 0 where
 * pipelines count from 1.
 * Source: diffusers `get_guidance_scale_embedding`.
 */
function embedGuidance(guidanceScale: number, width: number): Float32Array {
  const scaled = Math.fround(Math.fround(guidanceScale - 1) * 1000);
  const half = Math.floor(width / 2);
  const distance = Math.fround(Math.fround(Math.log(10_000)) / (half - 1));
  // An odd width ends in a 0.
  const embedding = new Float32Array(width);
  for (let at = 0; at < half; at++) {
    const frequency = Math.fround(Math.exp(Math.fround(at * -distance)));
    const angle = Math.fround(scaled * frequency);
    embedding[at] = Math.sin(angle);
    embedding[half + at] = Math.cos(angle);
  }
  return embedding;
}
