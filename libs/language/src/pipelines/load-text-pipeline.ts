import { loadDecoder, type LoadDecoderOptions } from '../decoder/load-decoder.ts';
import { readTextModelDirectory, type ReadTextModelOptions } from '../model/text-model-directory.ts';
import { AutoregressivePipeline } from './autoregressive.ts';
import { BlockDiffusionPipeline } from './block-diffusion.ts';
import type { TextPipeline } from './text-pipeline.ts';

/** Which model, and how it is run. */
export interface LoadTextPipelineOptions extends ReadTextModelOptions, LoadDecoderOptions {
  /** Path of the model's directory. */
  directory: string;
  /** Tokens of prompts that are read in one step beside rows that write, which wait for it. */
  stepTokens?: number;
}

/**
 * Loads whatever text model a directory holds.
 *
 * @throws DarkroomError `model_unsupported` if the directory is not one we can serve, `engine_failed` or `out_of_memory`
 * if its graph cannot be loaded.
 */
export async function loadTextPipeline(options: LoadTextPipelineOptions): Promise<TextPipeline> {
  const { directory, stepTokens = 64 } = options;
  const model = await readTextModelDirectory(directory, options);
  const { decoder, component } = await loadDecoder(model, options);
  const { card, config, codec } = model;
  const Pipeline = config.mode === 'autoregressive' ? AutoregressivePipeline : BlockDiffusionPipeline;
  return new Pipeline({ card, config, codec, decoder, component, stepTokens });
}
