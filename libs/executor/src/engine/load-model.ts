import type { Pipeline, PipelineRow } from '@darkroom/core';
import { loadPipeline, type LoadModelOptions as PictureOptions } from '@darkroom/diffusion';
import { isTextModel, loadTextPipeline, type LoadTextPipelineOptions } from '@darkroom/language';

/** Which model, and how it is run; each kind takes of it what it knows. */
export type LoadModelOptions = PictureOptions & LoadTextPipelineOptions;

/**
 * Loads whatever model a directory holds.
 *
 * @throws DarkroomError as the loader of its kind does.
 */
export async function loadModel(options: LoadModelOptions): Promise<Pipeline<PipelineRow>> {
  return (await isTextModel(options.directory)) ? loadTextPipeline(options) : loadPipeline(options);
}
