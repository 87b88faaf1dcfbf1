import type { Pipeline, PipelineRow } from '@darkroom/core';
import { loadPipeline, type LoadImageModelOptions as ImageOptions } from '@darkroom/diffusion';
import { isTextModel, loadTextPipeline, type LoadTextPipelineOptions } from '@darkroom/language';

/** The model's directory and how to run it; each kind reads the fields it knows. */
export type LoadModelOptions = ImageOptions & LoadTextPipelineOptions;

/**
 * Loads the model in a directory, of whatever kind.
 *
 * @throws DarkroomError as the loader of its kind does.
 */
export async function loadModel(options: LoadModelOptions): Promise<Pipeline<PipelineRow>> {
  return (await isTextModel(options.directory)) ? loadTextPipeline(options) : loadPipeline(options);
}
