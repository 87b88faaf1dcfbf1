import type { FloatTensor, OnnxSession } from '@darkroom/runtime';
import { type LoadedGraph, tryGraph } from './load-graph.ts';
import type { ModelGraphs } from './model-graphs.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { modelFileError } from '../model/model-file.ts';
import { PromptTokenizer } from '../tokenizer/prompt-tokenizer.ts';
import type { TokenizerFiles } from '../tokenizer/tokenizer-files.ts';

/** Texts whose embeddings are kept: most requests share their negative prompt, and often it is empty. */
const KEPT_TEXTS = 32;
/** Of their embeddings, which a T5 or GLM makes megabytes of. */
const KEPT_BYTES = 64 * 2 ** 20;

/** What a text encoder makes of a text. */
export interface EncodedPrompt {
  /** Its outputs that were asked for, flat. Shared between callers: read only. */
  readonly outputs: readonly Float32Array[];
  /** Tokens at the text's end that it did not read. */
  readonly cutTokens: number;
}

/** Turns texts into what the denoiser reads of them. */
export class PromptEncoder {
  readonly tokenizer: PromptTokenizer;
  readonly #session: OnnxSession;
  readonly #outputs: readonly string[];
  /** In order of use, the oldest first. */
  readonly #kept = new Map<string, EncodedPrompt>();
  #keptBytes = 0;

  /** @param outputs names of those of the session, which is a loaded text encoder. */
  constructor(tokenizer: TokenizerFiles, session: OnnxSession, outputs: readonly string[]) {
    this.tokenizer = new PromptTokenizer(tokenizer);
    this.#session = session;
    this.#outputs = outputs;
  }

  /**
   * Always encodes a text alone, so that its numbers do not depend on which others came with it.
   *
   * @throws DarkroomError if the graph fails.
   */
  async encode(text: string): Promise<EncodedPrompt> {
    const encoded = this.#kept.get(text) ?? (await this.#encodeAnew(text));
    this.#forget(text);
    this.#kept.set(text, encoded);
    this.#keptBytes += bytesOf(encoded);
    while (this.#kept.size > KEPT_TEXTS || this.#keptBytes > KEPT_BYTES) this.#forget(this.#kept.keys().next().value!);
    return encoded;
  }

  /** The graph's outputs for one row of token ids, as the tokenizer makes them; not kept. */
  encodeIds(ids: readonly number[]): Promise<readonly FloatTensor[]> {
    const isInt32 = this.#session.inputs.find(({ name }) => name === 'input_ids')?.type === 'int32';
    const data = isInt32 ? Int32Array.from(ids) : BigInt64Array.from(ids, BigInt);
    return this.#session.runForAll({ input_ids: { data, dims: [1, ids.length] } }, this.#outputs);
  }

  async #encodeAnew(text: string): Promise<EncodedPrompt> {
    const { ids, cutTokens } = this.tokenizer.encode(text);
    return { outputs: (await this.encodeIds(ids)).map(({ data }) => data), cutTokens };
  }

  #forget(text: string): void {
    this.#keptBytes -= bytesOf(this.#kept.get(text));
    this.#kept.delete(text);
  }
}

function bytesOf(encoded: EncodedPrompt | undefined): number {
  return encoded?.outputs.reduce((total, { byteLength }) => total + byteLength, 0) ?? 0;
}

/** What a pipeline reads of a text encoder. */
export interface EncoderOutputs {
  /** Names of the graph's outputs. */
  outputs: (graph: LoadedGraph) => readonly string[];
  /** Dimensions of each of them for a text of so many tokens, as the other files of the model say. */
  gives: (tokens: number) => readonly (readonly number[])[];
}

export interface LoadPromptEncoderOptions extends EncoderOutputs {
  model: ModelDirectory;
  graphs: ModelGraphs;
  /** Which of the model's text encoders, in the order of the pipeline's class. */
  at: number;
}

/**
 * Loads a text encoder and calls it once, with the highest id that its tokenizer writes.
 *
 * @returns `trial`: what it gave for that.
 * @throws DarkroomError naming the file, if it cannot be loaded or does not fit.
 */
export async function loadPromptEncoder({ model, graphs, at, outputs, gives }: LoadPromptEncoderOptions) {
  const graph = await graphs.loadTextEncoder(at);
  const { tokenizer } = model.textEncoders[at]!;
  const encoder = new PromptEncoder(tokenizer, graph.session, outputs(graph));
  const { trialIds } = encoder.tokenizer;
  const takes = `input_ids [1, ${trialIds.length}] of ids up to ${tokenizer.highestId}`;
  const results = encoder.encodeIds(trialIds);
  const trial: Float32Array[] = [];
  for (const [position, dims] of gives(trialIds.length).entries()) {
    const run = async () => (await results)[position]!;
    trial.push((await tryGraph({ file: graph.file, run, takes, gives: dims })).data);
  }
  await graphs.settle();
  return { encoder, trial };
}

/** Puts embeddings of the same tokens side by side: each is tokens × its width. `width`: values of each in `into`, all of theirs or more. */
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

/** The output of a text encoder that Stable Diffusion 1.x and its kin read: the last layer's, normalized. */
export function lastHiddenState({ outputs }: OnnxSession): string {
  return (outputs.find(({ name }) => name === 'last_hidden_state') ?? outputs[0]!).name;
}

/** The layer before the last, which SDXL and its successors read: exports name them from 0, the embeddings, to the last. */
export function secondLastHiddenState({ file, session }: LoadedGraph): string {
  const layers = session.outputs.filter(({ name }) => name.startsWith('hidden_states.')).length;
  if (layers >= 2) return `hidden_states.${layers - 2}`;
  const needed = 'which the pipeline reads; Optimum exports them of text encoders for it';
  throw modelFileError(file, `has no outputs hidden_states.0, hidden_states.1, …, ${needed}`);
}
