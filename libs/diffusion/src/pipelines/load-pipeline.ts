import { ModelGraphs, type LoadPipelineOptions } from '../graphs/model-graphs.ts';
import { readModelDirectory, type ReadModelDirectoryOptions } from '../model/model-directory.ts';
import { pipelineFamilies, type PipelineFamily } from '../model/config/pipeline-classes.ts';
import type { ImagePipeline } from '../image/image-row.ts';
import { CogView4Pipeline } from './cogview4.ts';
import { LatentConsistencyPipeline } from './latent-consistency.ts';
import { StableDiffusion3Pipeline } from './stable-diffusion-3.ts';
import { StableDiffusionXlPipeline } from './stable-diffusion-xl.ts';
import { StableDiffusionPipeline } from './stable-diffusion.ts';

const pipelines: Readonly<Record<PipelineFamily, typeof StableDiffusionPipeline>> = {
  'stable-diffusion': StableDiffusionPipeline,
  'latent-consistency': LatentConsistencyPipeline,
  'stable-diffusion-xl': StableDiffusionXlPipeline,
  'stable-diffusion-3': StableDiffusion3Pipeline,
  cogview4: CogView4Pipeline,
};

/** The model and how it runs. */
export interface LoadImageModelOptions extends ReadModelDirectoryOptions, LoadPipelineOptions {
  directory: string;
}

/**
 * Loads the model of a directory with the pipeline for the class in its model_index.json.
 *
 * @throws DarkroomError `model_unsupported` if the directory cannot be served, `engine_failed` or `out_of_memory` if
 * its graphs cannot be loaded.
 */
export async function loadPipeline({
  directory,
  id,
  dtypes,
  safetyChecker,
  ...options
}: LoadImageModelOptions): Promise<ImagePipeline> {
  const model = await readModelDirectory(directory, { id, dtypes, safetyChecker });
  const Pipeline = pipelines[pipelineFamilies[model.pipelineClass]];
  return new Pipeline(model, new ModelGraphs(model, options)).load();
}
