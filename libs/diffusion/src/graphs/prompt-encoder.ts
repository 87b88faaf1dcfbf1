import { itemAt, type NonEmpty } from '@darkroom/core';
import { parsePromptWeights } from '@darkroom/kinds';
import type { FloatTensor, OnnxSession } from '@darkroom/runtime';
import { type LoadedGraph, tryGraph } from '../onnx/load-graph.ts';
import { LoraFeeds } from '../loras/lora-feeds.ts';
import type { LoraLayer } from '../loras/lora-layers.ts';
import type { LoraSet } from '../loras/lora-set.ts';
import type { ModelGraphs } from './model-graphs.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { modelFileError } from '@darkroom/runtime/model-file';
import { PromptTokenizer } from '../tokenizer/prompt-tokenizer.ts';
import type { TokenizerFiles } from '../tokenizer/tokenizer-files.ts';
import { applyWeights, chunksOf, concatenate, isPerToken } from './weighted-prompt.ts';

/** Maximum number of cached embeddings. Most requests share their negative prompt, which is often empty. */
const MAX_CACHED_TEXTS = 32;
/** Maximum size of all cached embeddings: one from T5 or GLM takes megabytes. */
const MAX_CACHED_BYTES = 64 * 2 ** 20;

/** The outputs of a text encoder for one text. */
export interface EncodedPrompt {
  /** The outputs that the pipeline reads, flat. Shared between callers: read only. */
  readonly outputs: readonly Float32Array[];
  /** Tokens at the end of the text that were cut off. */
  readonly cutTokens: number;
}

export interface EncodeOptions {
  /** Number of chunks of a text with weights; absent: the text is plain, and cut at the encoder's limit. */
  readonly chunks?: number | undefined;
  readonly loras?: LoraSet | undefined;
}

/** Encodes texts into embeddings for the denoiser, with a cache. */
export class PromptEncoder {
  readonly tokenizer: PromptTokenizer;
  readonly #session: OnnxSession;
  readonly #outputs: NonEmpty<string>;
  /** In order of use, the least recently used first. */
  readonly #cache = new Map<string, EncodedPrompt>();
  #cachedBytes = 0;
  #loras: { readonly session: OnnxSession; readonly feeds: LoraFeeds } | undefined;

  /** @param outputs names of the outputs to read from the session, a loaded text encoder. */
  constructor(tokenizer: TokenizerFiles, session: OnnxSession, outputs: NonEmpty<string>) {
    this.tokenizer = new PromptTokenizer(tokenizer);
    this.#session = session;
    this.#outputs = outputs;
  }

  /** True if texts can be encoded with adapters. */
  get hasLoras(): boolean {
    return this.#loras !== undefined;
  }

  /**
   * Adds a graph for texts with adapters: the same inputs and outputs plus the adapters' inputs. Texts without adapters
   * still run in the graph without them.
   */
  addLoras({ session }: LoadedGraph, layers: readonly LoraLayer[]): void {
    this.#loras = { session, feeds: new LoraFeeds(layers) };
  }

  /**
   * Encodes a text, always in a call of its own, so that its numbers do not depend on other texts. With `chunks` it is
   * a text with weights (`parsePromptWeights`), of which so many chunks are encoded: their tokens follow each other in
   * the outputs per token; other outputs are those of the first chunk, without weights.
   *
   * @param options `loras`: adapters, after `addLoras`.
   * @throws DarkroomError if the graph fails.
   */
  async encode(text: string, options: EncodeOptions = {}): Promise<EncodedPrompt> {
    const { chunks, loras } = options;
    // Adapter keys contain no line break.
    const key = `${loras?.key ?? ''}\n${chunks ?? ''}\n${text}`;
    const encoded = this.#cache.get(key) ?? (await this.#encodeUncached(text, options));
    this.#evict(key);
    this.#cache.set(key, encoded);
    this.#cachedBytes += bytesOf(encoded);
    for (const oldest of this.#cache.keys()) {
      if (this.#cache.size <= MAX_CACHED_TEXTS && this.#cachedBytes <= MAX_CACHED_BYTES) break;
      this.#evict(oldest);
    }
    return encoded;
  }

  /** Returns the number of chunks of a text with weights. */
  countChunks(text: string): number {
    return chunksOf(this.tokenizer, parsePromptWeights(text)).length;
  }

  /** Returns the graph's outputs for one row of token ids from the tokenizer, without the cache. */
  encodeIds(ids: readonly number[], loras?: LoraSet): Promise<readonly FloatTensor[]> {
    const isInt32 = this.#session.inputs.find(({ name }) => name === 'input_ids')?.type === 'int32';
    const data = isInt32 ? Int32Array.from(ids) : BigInt64Array.from(ids, BigInt);
    const tokens = { input_ids: { data, dims: [1, ids.length] } };
    if (loras === undefined) return this.#session.runForAll(tokens, this.#outputs);
    if (this.#loras === undefined) throw new Error('a text has adapters, and no graph takes them');
    const { session, feeds } = this.#loras;
    return session.runForAll({ ...tokens, ...feeds.feedsOf([loras]) }, this.#outputs);
  }

  async #encodeUncached(text: string, { chunks, loras }: EncodeOptions): Promise<EncodedPrompt> {
    if (chunks !== undefined) return this.#encodeWeighted(text, chunks, loras);
    const { ids, cutTokens } = this.tokenizer.encode(text);
    return { outputs: (await this.encodeIds(ids, loras)).map(({ data }) => data), cutTokens };
  }

  async #encodeWeighted(text: string, chunks: number, loras: LoraSet | undefined): Promise<EncodedPrompt> {
    const all = chunksOf(this.tokenizer, parsePromptWeights(text), chunks);
    const encoded: (readonly FloatTensor[])[] = [];
    for (const { ids, weights } of all.slice(0, chunks)) {
      const outputs = await this.encodeIds(ids, loras);
      const isWeighted = weights.some((weight) => weight !== 1);
      encoded.push(isWeighted ? applyWeights(outputs, (await this.encode('', { loras })).outputs, weights) : outputs);
    }
    const outputs = itemAt(encoded, 0).map(({ data, dims }, at) =>
      isPerToken(dims) ? concatenate(encoded.map((chunk) => itemAt(chunk, at).data)) : data,
    );
    return { outputs, cutTokens: all.slice(chunks).reduce((sum, { textTokens }) => sum + textTokens, 0) };
  }

  #evict(key: string): void {
    this.#cachedBytes -= bytesOf(this.#cache.get(key));
    this.#cache.delete(key);
  }
}

function bytesOf(encoded: EncodedPrompt | undefined): number {
  return encoded?.outputs.reduce((total, { byteLength }) => total + byteLength, 0) ?? 0;
}

/** The outputs that a pipeline reads from a text encoder. */
export interface EncoderOutputs {
  /** Names of the graph's outputs. */
  outputs: (graph: LoadedGraph) => NonEmpty<string>;
  /** Dimensions of each output for a text of so many tokens, from the model's other files. */
  outputDims: (tokens: number) => readonly (readonly number[])[];
}

export interface LoadPromptEncoderOptions extends EncoderOutputs {
  model: ModelDirectory;
  graphs: ModelGraphs;
  /** Index of the text encoder, in the order of the pipeline's class. */
  at: number;
}

/**
 * Loads a text encoder and calls it once, with the highest id of its tokenizer.
 *
 * @returns `trial`: the outputs of that call.
 * @throws DarkroomError naming the file, if it cannot be loaded or does not fit.
 */
export async function loadPromptEncoder({ model, graphs, at, outputs, outputDims }: LoadPromptEncoderOptions) {
  const graph = await graphs.loadTextEncoder(at);
  const { tokenizer } = itemAt(model.textEncoders, at);
  const encoder = new PromptEncoder(tokenizer, graph.session, outputs(graph));
  const { trialIds } = encoder.tokenizer;
  const takes = `input_ids [1, ${trialIds.length}] of ids up to ${tokenizer.highestId}`;
  const results = encoder.encodeIds(trialIds);
  const trial: Float32Array[] = [];
  for (const [position, dims] of outputDims(trialIds.length).entries()) {
    const run = async () => itemAt(await results, position);
    trial.push((await tryGraph({ file: graph.file, run, inputs: takes, outputDims: dims })).data);
  }
  await graphs.unloadEncoders();
  return { encoder, trial };
}

/**
 * Concatenates embeddings of the same tokens along their width; each is tokens × its own width. `width` is the row
 * width of `into`: at least the sum of the embeddings' widths.
 */
export function joinTokens(
  embeddings: readonly Float32Array[],
  { tokens, into, width = into.length / tokens }: { tokens: number; into: Float32Array; width?: number },
): void {
  for (let token = 0; token < tokens; token++) {
    let offset = token * width;
    for (const embedding of embeddings) {
      const side = embedding.length / tokens;
      into.set(embedding.subarray(token * side, (token + 1) * side), offset);
      offset += side;
    }
  }
}

/** Returns the name of the last layer's normalized output, which Stable Diffusion 1.x and its derivatives read. */
export function lastHiddenState({ outputs }: OnnxSession): string {
  return (outputs.find(({ name }) => name === 'last_hidden_state') ?? itemAt(outputs, 0)).name;
}

/**
 * Returns the name of the second-to-last layer's output, which SDXL and its successors read. Exports number the layers
 * from 0 (the embeddings) to the last.
 */
export function secondLastHiddenState({ file, session }: LoadedGraph): string {
  const layers = session.outputs.filter(({ name }) => name.startsWith('hidden_states.')).length;
  if (layers >= 2) return `hidden_states.${layers - 2}`;
  const needed = 'which the pipeline reads; Optimum exports them for text encoders of such a pipeline';
  throw modelFileError(file, `has no outputs hidden_states.0, hidden_states.1, …, ${needed}`);
}
