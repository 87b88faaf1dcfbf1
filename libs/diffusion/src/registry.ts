import { readModelDirectory } from './model-directory.ts';
import type { ModelDirectory, ReadModelDirectoryOptions } from './model-directory.ts';
import type { PipelineClass } from './pipeline-classes.ts';
import type { Pipeline } from './pipeline.ts';
import { loadStableDiffusion } from './pipelines/stable-diffusion.ts';
import type { LoadPipelineOptions, PictureRow } from './pipelines/stable-diffusion.ts';

const loaders: Readonly<
  Record<PipelineClass, (directory: ModelDirectory, options: LoadPipelineOptions) => Promise<Pipeline<PictureRow>>>
> = {
  StableDiffusionPipeline: loadStableDiffusion,
  OnnxStableDiffusionPipeline: loadStableDiffusion,
};

/** Which model, and how it is run. */
export interface LoadModelOptions extends ReadModelDirectoryOptions, LoadPipelineOptions {
  /** Path of the model's directory. */
  directory: string;
}

/**
 * Loads whatever model a directory holds, by the class that its model_index.json names.
 *
 * @throws DarkroomError `model_unsupported` if the directory is not one we can serve, `engine_failed` or `out_of_memory`
 * if its graphs cannot be loaded.
 */
export async function loadPipeline({ directory, id, variant, ...options }: LoadModelOptions) {
  const model = await readModelDirectory(directory, {
    ...(id === undefined ? {} : { id }),
    ...(variant === undefined ? {} : { variant }),
  });
  return loaders[model.pipelineClass](model, options);
}
