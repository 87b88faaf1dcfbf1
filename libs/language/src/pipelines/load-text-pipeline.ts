import type { PipelineComponent } from '@darkroom/core';
import { checkDeterminism, type DeterminismFindings } from '../decoder/check-determinism.ts';
import type { Decoder } from '../decoder/decoder.ts';
import { loadDecoder, type LoadDecoderOptions } from '../decoder/load-decoder.ts';
import {
  readTextModelDirectory,
  type ReadTextModelOptions,
  type TextModelDirectory,
} from '../model/text-model-directory.ts';
import { AutoregressivePipeline } from './autoregressive.ts';
import { BlockDiffusionPipeline } from './block-diffusion.ts';
import type { TextPipeline } from './text-pipeline.ts';

/** Which model, and how it is run. */
export interface LoadTextPipelineOptions extends ReadTextModelOptions, LoadDecoderOptions {
  /** Path of the model's directory. */
  directory: string;
  /** Tokens of prompts that are read at most in one step beside rows that write, which wait for it. */
  stepTokens?: number;
  /** Tokens that caches of ended texts may take the memory of, for those that begin as they did. */
  keptTokens?: number;
  /** Tokens of cache that there is memory for; any number by default. */
  memoryTokens?: number;
}

/**
 * Loads whatever text model a directory holds.
 *
 * @throws DarkroomError `model_unsupported` if the directory is not one we can serve, `engine_failed` or `out_of_memory`
 * if its graph cannot be loaded.
 */
export async function loadTextPipeline(options: LoadTextPipelineOptions): Promise<TextPipeline> {
  const { directory, stepTokens = 64, keptTokens = 4096, memoryTokens = Infinity } = options;
  const model = await readTextModelDirectory(directory, options);
  const { decoder, component } = await loadDecoder(model, options);
  const { config, codec } = model;
  const { deterministic, singlesAsPieces } = await findingsOf(decoder, model, component).catch(
    async (error: unknown) => {
      await decoder.dispose();
      throw error;
    },
  );
  const card = { ...model.card, deterministic };
  const Pipeline = config.mode === 'autoregressive' ? AutoregressivePipeline : BlockDiffusionPipeline;
  const sizes = { stepTokens, keptTokens, memoryTokens };
  return new Pipeline({ card, config, codec, decoder, component, ...sizes, singlesAsPieces });
}

async function findingsOf(
  decoder: Decoder,
  { card, config }: TextModelDirectory,
  { device }: PipelineComponent,
): Promise<DeterminismFindings> {
  if (device !== 'cpu') {
    const reason = `on ${device} the last bits of a row change with the rows that share its steps`;
    return { deterministic: { is: false, reason }, singlesAsPieces: true };
  }
  const { vocabularySize, maxModelTokens } = card;
  const isCausal = config.mode === 'autoregressive';
  return checkDeterminism({ decoder, vocabularySize, maxModelTokens, width: config.block?.size ?? 1, isCausal });
}
