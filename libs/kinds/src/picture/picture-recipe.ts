import type { PictureInput } from './picture-input.ts';

/** What made one picture, as a body that makes it again; of one that was made of a picture, as far as text can say it. */
export interface PictureRecipe extends Pick<PictureInput, 'strength' | 'loras' | 'upscale'> {
  model: string;
  prompt: string;
  negative_prompt: string;
  /** Pixels of what the model draws, `WIDTHxHEIGHT`. */
  size: string;
  num_inference_steps: number;
  guidance_scale: number;
  guidance_rescale: number;
  seed: number;
  scheduler: string;
}

/** @param seed the picture's own, which is that of its request and one more for each picture before it. */
export function recipeOf(model: string, input: PictureInput, seed: number): PictureRecipe {
  const { strength, loras, upscale } = input;
  return {
    model,
    prompt: input.prompt,
    negative_prompt: input.negativePrompt,
    size: `${input.width}x${input.height}`,
    num_inference_steps: input.numInferenceSteps,
    guidance_scale: input.guidanceScale,
    guidance_rescale: input.guidanceRescale,
    seed,
    scheduler: input.scheduler,
    ...(strength !== undefined && { strength }),
    ...(loras !== undefined && { loras }),
    ...(upscale !== undefined && { upscale }),
  };
}
