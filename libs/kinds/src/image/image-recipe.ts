import type { ImageInput } from './image-input.ts';

/** Generation parameters of one image, as a request body that reproduces it (except for an input image). */
export interface ImageRecipe extends Pick<ImageInput, 'strength' | 'loras' | 'upscale'> {
  model: string;
  prompt: string;
  negative_prompt: string;
  prompt_syntax?: 'webui';
  /** Size in pixels before upscaling, `WIDTHxHEIGHT`. */
  size: string;
  num_inference_steps: number;
  guidance_scale: number;
  guidance_rescale: number;
  seed: number;
  scheduler: string;
}

/** Returns the generation parameters of one image. @param seed the image's own seed (see `seedOfImage`). */
export function recipeOf(model: string, input: ImageInput, seed: number): ImageRecipe {
  const { strength, loras, upscale } = input;
  return {
    model,
    prompt: input.prompt,
    negative_prompt: input.negativePrompt,
    ...(input.promptSyntax && { prompt_syntax: input.promptSyntax }),
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
