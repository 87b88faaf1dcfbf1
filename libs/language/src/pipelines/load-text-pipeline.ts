import { Grammars } from '@darkroom/kinds';
import { checkDeterminism, type DeterminismFindings } from '../decoder/check-determinism.ts';
import { loadDecoder, type LoadDecoderOptions, type LoadedDecoder } from '../decoder/load-decoder.ts';
import {
  readTextModelDirectory,
  type ReadTextModelOptions,
  type TextModelDirectory,
} from '../model/text-model-directory.ts';
import { ImageEncoder } from '../vision/image-encoder.ts';
import { TokenEmbeddings } from '../vision/token-embeddings.ts';
import { AutoregressivePipeline } from './autoregressive.ts';
import { BlockDiffusionPipeline } from './block-diffusion.ts';
import type { TextPipeline } from './text-pipeline.ts';

/** Timeout for preparing a grammar, and for computing its allowed tokens once. */
const grammarLimitMs = 20_000;

/** The model, and how to run it. */
export interface LoadTextPipelineOptions extends ReadTextModelOptions, LoadDecoderOptions {
  /** Path of the model's directory. */
  directory: string;
  /** Prompt tokens per step while other rows write, which wait for it: more reads long prompts faster. Default 64. */
  stepTokens?: number;
  /** Memory limit of the prefix cache, in tokens. */
  prefixCacheTokens?: number;
  /** Memory limit of all KV caches, in tokens; default unlimited. */
  memoryTokens?: number;
}

/**
 * Loads the text model in a directory.
 *
 * @throws DarkroomError `model_unsupported` if the directory is not a supported model; `engine_failed` or
 * `out_of_memory` if its graph cannot be loaded.
 */
export async function loadTextPipeline(options: LoadTextPipelineOptions): Promise<TextPipeline> {
  const { directory, stepTokens = 64, prefixCacheTokens = 4096, memoryTokens = Infinity } = options;
  const model = await readTextModelDirectory(directory, options);
  const { config, codec, codecDocument } = model;
  const imageEncoder = await loadImageEncoder(model, options);
  const loaded = await loadParts(model, options).catch(async (error: unknown) => {
    await imageEncoder?.dispose();
    throw error;
  });
  const { decoder, component, deterministic, singlesMatchChunks } = loaded;
  const card = { ...model.card, deterministic };
  const Pipeline = config.mode === 'autoregressive' ? AutoregressivePipeline : BlockDiffusionPipeline;
  const grammars = new Grammars({ vocabulary: { codecDocument, endIds: config.endIds }, limitMs: grammarLimitMs });
  const sizes = { stepTokens, prefixCacheTokens: Math.min(prefixCacheTokens, memoryTokens), memoryTokens };
  return new Pipeline({
    card,
    config,
    codec,
    decoder,
    grammars,
    component,
    imageEncoder,
    ...sizes,
    singlesMatchChunks,
  });
}

async function loadImageEncoder(
  { path: directory, imageGraphs, config }: TextModelDirectory,
  { devices, threads }: LoadTextPipelineOptions,
): Promise<ImageEncoder | undefined> {
  const { images, hiddenSize: width } = config;
  if (imageGraphs === undefined || images === undefined) return undefined;
  return ImageEncoder.load({ directory, graph: imageGraphs.encoder, images, width, devices, threads });
}

/** Loads the decoder and tests it. */
async function loadParts(
  model: TextModelDirectory,
  options: LoadTextPipelineOptions,
): Promise<LoadedDecoder & DeterminismFindings> {
  const { path, imageGraphs, config } = model;
  const tokens = imageGraphs && (await TokenEmbeddings.load(path, imageGraphs.embeddings, config.hiddenSize));
  const loaded = await loadDecoder(model, options, tokens).catch(async (error: unknown) => {
    await tokens?.dispose();
    throw error;
  });
  try {
    return { ...loaded, ...(await findingsOf(loaded, model)) };
  } catch (error) {
    await loaded.decoder.dispose();
    throw error;
  }
}

async function findingsOf(
  { decoder, nondeterminismReason }: LoadedDecoder,
  { card, config }: TextModelDirectory,
): Promise<DeterminismFindings> {
  if (nondeterminismReason !== undefined)
    return { deterministic: { is: false, reason: nondeterminismReason }, singlesMatchChunks: true };
  const { vocabularySize, maxModelTokens } = card;
  const isCausal = config.mode === 'autoregressive';
  return checkDeterminism({ decoder, vocabularySize, maxModelTokens, width: config.block?.size ?? 1, isCausal });
}
