import type { FloatTensor, OnnxSession } from '@darkroom/runtime';
import type { LoadedGraph } from './load-graph.ts';
import { modelFileError } from '../model/model-file.ts';
import { PromptTokenizer } from '../tokenizer/prompt-tokenizer.ts';
import type { TokenizerFiles } from '../tokenizer/tokenizer-files.ts';
import type { Conditioning } from './denoiser-batch.ts';

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

/** A text as a denoiser is told it. */
export interface ReadText {
  readonly conditioning: Conditioning;
  /** Tokens at the text's end that none of the encoders read. */
  readonly cutTokens: number;
}

/** What of a text is lost: each encoder has its own tokens, and the one that reads the furthest says it. */
export function tokensCutByAll(encoded: readonly EncodedPrompt[]): number {
  return Math.min(...encoded.map(({ cutTokens }) => cutTokens));
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
  tokenizer: TokenizerFiles;
  /** A loaded text encoder. */
  session: OnnxSession;
  /** Names of its outputs. */
  outputs: readonly string[];
}

/** Makes a prompt encoder of a tokenizer and a loaded text encoder. */
export function createPromptEncoder({ tokenizer: files, session, outputs }: CreatePromptEncoderOptions): PromptEncoder {
  const tokenizer = new PromptTokenizer(files);
  const isInt32 = session.inputs.find(({ name }) => name === 'input_ids')?.type === 'int32';
  // In order of use, the oldest first.
  const kept = new Map<string, EncodedPrompt>();
  let keptBytes = 0;

  function forget(text: string): void {
    keptBytes -= bytesOf(kept.get(text));
    kept.delete(text);
  }

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
      forget(text);
      kept.set(text, encoded);
      keptBytes += bytesOf(encoded);
      while (kept.size > KEPT_TEXTS || keptBytes > KEPT_BYTES) forget(kept.keys().next().value!);
      return encoded;
    },
  };
}

function bytesOf(encoded: EncodedPrompt | undefined): number {
  return encoded?.outputs.reduce((total, { byteLength }) => total + byteLength, 0) ?? 0;
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
