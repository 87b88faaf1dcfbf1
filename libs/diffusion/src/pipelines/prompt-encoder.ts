import type { FloatTensor, OnnxSession } from '@darkroom/runtime';
import type { LoadedGraph } from '../load-graph.ts';
import { modelFileError } from '../model-file.ts';
import { createPromptTokenizer } from '../tokenizer/prompt-tokenizer.ts';
import type { PromptTokenizer, PromptTokenizerFiles } from '../tokenizer/prompt-tokenizer.ts';

/** Texts whose embeddings are kept: most requests share their negative prompt, and often it is empty. */
const KEPT_TEXTS = 32;

/** What a text encoder makes of a text. */
export interface EncodedPrompt {
  /** Its outputs that were asked for, flat. Shared between callers: read only. */
  readonly outputs: readonly Float32Array[];
  /** Tokens at the text's end that it did not read. */
  readonly cutTokens: number;
}

/** Turns texts into what the denoiser reads of them. */
export interface PromptEncoder {
  readonly tokenizer: PromptTokenizer;
  /**
   * Always encodes a text alone, so that its numbers do not depend on which others came with it.
   *
   * @throws DarkroomError if the graph fails.
   */
  encode(text: string): Promise<EncodedPrompt>;
  /** The graph's outputs for one row of token ids, as the tokenizer makes them; not kept. */
  encodeIds(ids: readonly number[]): Promise<readonly FloatTensor[]>;
}

export interface CreatePromptEncoderOptions {
  tokenizer: PromptTokenizerFiles;
  /** A loaded text encoder. */
  session: OnnxSession;
  /** Names of its outputs. */
  outputs: readonly string[];
}

/** Makes a prompt encoder of a tokenizer and a loaded text encoder. */
export function createPromptEncoder({ tokenizer: files, session, outputs }: CreatePromptEncoderOptions): PromptEncoder {
  const tokenizer = createPromptTokenizer(files);
  const isInt32 = session.inputs.find(({ name }) => name === 'input_ids')?.type === 'int32';
  // In order of use, the oldest first.
  const kept = new Map<string, EncodedPrompt>();

  function encodeIds(ids: readonly number[]): Promise<FloatTensor[]> {
    const data = isInt32 ? Int32Array.from(ids) : BigInt64Array.from(ids, BigInt);
    return session.runForAll({ input_ids: { data, dims: [1, ids.length] } }, outputs);
  }

  async function encodeAnew(text: string): Promise<EncodedPrompt> {
    const { ids, cutTokens } = tokenizer.encode(text);
    return { outputs: (await encodeIds(ids)).map(({ data }) => data), cutTokens };
  }

  return {
    tokenizer,
    encodeIds,
    async encode(text) {
      const encoded = kept.get(text) ?? (await encodeAnew(text));
      kept.delete(text);
      kept.set(text, encoded);
      if (kept.size > KEPT_TEXTS) kept.delete(kept.keys().next().value!);
      return encoded;
    },
  };
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
