/**
 * Latent consistency models: Stable Diffusion distilled to a few steps. The UNet takes the guidance as an input, so an
 * image takes one row of its batch; negative prompts and guidance rescale have no effect.
 * Source: Luo et al. 2023, "Latent Consistency Models"; diffusers `LatentConsistencyModelPipeline.__call__` and
 * `LatentConsistencyModelImg2ImgPipeline.__call__`.
 *
 * Known limits: no clip skip; no masks, because diffusers has no pipeline for them.
 */
import type { Conditioning, DenoiserInputs } from '../graphs/denoiser-batch.ts';
import type { ImageRowInput } from '../image/image-request.ts';
import { type ConditioningRequest, type ImageSchedule, StableDiffusionPipeline } from './stable-diffusion.ts';

/** Runs the graphs of Stable Diffusion, with one more input of the UNet. */
export class LatentConsistencyPipeline extends StableDiffusionPipeline {
  protected override get denoiserInputs(): DenoiserInputs {
    const { conditioning } = super.denoiserInputs;
    return { conditioning: { ...conditioning, timestep_cond: [this.#guidanceWidth] } };
  }

  protected override conditioningOf(outputs: readonly Float32Array[], request: ConditioningRequest): Conditioning {
    const guidance = embedGuidance(request.guidanceScale, this.#guidanceWidth);
    return { ...super.conditioningOf(outputs, request), timestep_cond: guidance };
  }

  protected override needsNegativePrompt(): boolean {
    return false;
  }

  /** With an input image, takes all steps, at the less noisy timesteps. */
  protected override scheduleOf({ strength }: ImageRowInput): ImageSchedule {
    return { distilledShare: strength };
  }

  get #guidanceWidth(): number {
    return this.model.denoiser.guidanceWidth ?? 0;
  }
}

/**
 * Embeds the guidance for the UNet: sines and cosines of (guidance − 1) · 1000, in float32. The paper counts guidance
 * from 0, pipelines from 1.
 * Source: diffusers `get_guidance_scale_embedding`.
 */
function embedGuidance(guidanceScale: number, width: number): Float32Array {
  const scaled = Math.fround(Math.fround(guidanceScale - 1) * 1000);
  const half = Math.floor(width / 2);
  const distance = Math.fround(Math.fround(Math.log(10_000)) / (half - 1));
  // An odd width ends with a 0.
  const embedding = new Float32Array(width);
  for (let at = 0; at < half; at++) {
    const frequency = Math.fround(Math.exp(Math.fround(at * -distance)));
    const angle = Math.fround(scaled * frequency);
    embedding[at] = Math.sin(angle);
    embedding[half + at] = Math.cos(angle);
  }
  return embedding;
}
