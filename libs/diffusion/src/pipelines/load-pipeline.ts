import { type ModelDirectory, readModelDirectory, type ReadModelDirectoryOptions } from '../model/model-directory.ts';
import { pipelineFamilies, type PipelineFamily } from '../model/pipeline-classes.ts';
import { loadCogView4 } from './cogview4.ts';
import { loadLatentConsistency } from './latent-consistency.ts';
import type { LoadPipelineOptions } from './load-pipeline-options.ts';
import type { PicturePipeline } from '../picture/picture-pipeline.ts';
import { loadStableDiffusion3 } from './stable-diffusion-3.ts';
import { loadStableDiffusionXl } from './stable-diffusion-xl.ts';
import { loadStableDiffusion } from './stable-diffusion.ts';

const loaders: Readonly<
  Record<PipelineFamily, (directory: ModelDirectory, options: LoadPipelineOptions) => Promise<PicturePipeline>>
> = {
  'stable-diffusion': loadStableDiffusion,
  'latent-consistency': loadLatentConsistency,
  'stable-diffusion-xl': loadStableDiffusionXl,
  'stable-diffusion-3': loadStableDiffusion3,
  cogview4: loadCogView4,
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
export async function loadPipeline({ directory, id, dtypes, ...options }: LoadModelOptions): Promise<PicturePipeline> {
  const model = await readModelDirectory(directory, {
    ...(id === undefined ? {} : { id }),
    ...(dtypes === undefined ? {} : { dtypes }),
  });
  return loaders[pipelineFamilies[model.pipelineClass]](model, options);
}
