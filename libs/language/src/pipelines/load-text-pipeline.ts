import { Grammars } from '@darkroom/kinds';
import { checkDeterminism, type DeterminismFindings } from '../decoder/check-determinism.ts';
import { loadDecoder, type LoadDecoderOptions, type LoadedDecoder } from '../decoder/load-decoder.ts';
import {
  readTextModelDirectory,
  type ReadTextModelOptions,
  type TextModelDirectory,
} from '../model/text-model-directory.ts';
import { AutoregressivePipeline } from './autoregressive.ts';
import { BlockDiffusionPipeline } from './block-diffusion.ts';
import type { TextPipeline } from './text-pipeline.ts';

/** How long a grammar may take to be prepared, or a token of it to be found out. */
const grammarLimitMs = 20_000;

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
  const loaded = await loadDecoder(model, options);
  const { decoder, component } = loaded;
  const { config, codec, codecDocument } = model;
  const { deterministic, singlesAsPieces } = await findingsOf(loaded, model).catch(async (error: unknown) => {
    await decoder.dispose();
    throw error;
  });
  const card = { ...model.card, deterministic };
  const Pipeline = config.mode === 'autoregressive' ? AutoregressivePipeline : BlockDiffusionPipeline;
  const grammars = new Grammars({ vocabulary: { codecDocument, endIds: config.endIds }, limitMs: grammarLimitMs });
  const sizes = { stepTokens, keptTokens: Math.min(keptTokens, memoryTokens), memoryTokens };
  return new Pipeline({ card, config, codec, decoder, grammars, component, ...sizes, singlesAsPieces });
}

async function findingsOf(
  { decoder, spoiledBits }: LoadedDecoder,
  { card, config }: TextModelDirectory,
): Promise<DeterminismFindings> {
  if (spoiledBits !== undefined) return { deterministic: { is: false, reason: spoiledBits }, singlesAsPieces: true };
  const { vocabularySize, maxModelTokens } = card;
  const isCausal = config.mode === 'autoregressive';
  return checkDeterminism({ decoder, vocabularySize, maxModelTokens, width: config.block?.size ?? 1, isCausal });
}
