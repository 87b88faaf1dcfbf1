import { ModelGraphs, type LoadPipelineOptions } from '../graphs/model-graphs.ts';
import { type ModelDirectory, readModelDirectory, type ReadModelDirectoryOptions } from '../model/model-directory.ts';
import { pipelineFamilies, type PipelineFamily } from '../model/pipeline-classes.ts';
import { loadPicturePipeline, type PictureFamily, type PicturePipeline } from '../picture/picture-pipeline.ts';
import { cogView4 } from './cogview4.ts';
import { latentConsistency } from './latent-consistency.ts';
import { stableDiffusion3 } from './stable-diffusion-3.ts';
import { stableDiffusionXl } from './stable-diffusion-xl.ts';
import { stableDiffusion } from './stable-diffusion.ts';

const families: Readonly<Record<PipelineFamily, (model: ModelDirectory) => PictureFamily>> = {
  'stable-diffusion': stableDiffusion,
  'latent-consistency': latentConsistency,
  'stable-diffusion-xl': stableDiffusionXl,
  'stable-diffusion-3': stableDiffusion3,
  cogview4: cogView4,
};

/** Which model, and how it is run. */
export interface LoadModelOptions extends ReadModelDirectoryOptions, LoadPipelineOptions {
  directory: string;
}

/**
 * Loads whatever model a directory holds, by the class that its model_index.json names.
 *
 * @throws DarkroomError `model_unsupported` if the directory is not one we can serve, `engine_failed` or `out_of_memory`
 * if its graphs cannot be loaded.
 */
export async function loadPipeline({
  directory,
  id,
  dtypes,
  safetyChecker,
  ...options
}: LoadModelOptions): Promise<PicturePipeline> {
  const model = await readModelDirectory(directory, { id, dtypes, safetyChecker });
  const family = families[pipelineFamilies[model.pipelineClass]](model);
  return loadPicturePipeline(model, { family, graphs: new ModelGraphs(model, options) });
}
