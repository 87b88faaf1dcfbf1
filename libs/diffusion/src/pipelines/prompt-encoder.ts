import type { FloatTensor, OnnxSession } from '@darkroom/runtime';
import { createClipTokenizer } from '../tokenizer/clip-tokenizer.ts';
import type { TokenizerFiles } from '../tokenizer/tokenizer-files.ts';

/** Texts whose embeddings are kept: most requests share their negative prompt, and often it is empty. */
const KEPT_TEXTS = 32;

/** Turns texts into what the UNet reads of them. */
export interface PromptEncoder {
  /**
   * The text encoder's outputs asked for, flat. Shared between callers: read only. Always encoded alone, so that a text's
   * numbers do not depend on which others came with it.
   *
   * @throws DarkroomError if the graph fails.
   */
  encode(text: string): Promise<readonly Float32Array[]>;
  /** The same of one row of token ids, as long as the tokenizer makes it; not kept. */
  encodeIds(ids: readonly number[]): Promise<readonly FloatTensor[]>;
}

export interface CreatePromptEncoderOptions {
  tokenizer: TokenizerFiles;
  /** A loaded CLIP text encoder. */
  session: OnnxSession;
  /** Names of its outputs. */
  outputs: readonly string[];
}

/** Makes a prompt encoder of a tokenizer and a loaded CLIP text encoder. */
export function createPromptEncoder({ tokenizer: files, session, outputs }: CreatePromptEncoderOptions): PromptEncoder {
  const tokenizer = createClipTokenizer(files);
  const isInt32 = session.inputs.find(({ name }) => name === 'input_ids')?.type === 'int32';
  // In order of use, the oldest first.
  const kept = new Map<string, readonly Float32Array[]>();

  function encodeIds(ids: readonly number[]): Promise<FloatTensor[]> {
    const data = isInt32 ? Int32Array.from(ids) : BigInt64Array.from(ids, BigInt);
    return session.runForAll({ input_ids: { data, dims: [1, ids.length] } }, outputs);
  }

  return {
    encodeIds,
    async encode(text) {
      const embeddings = kept.get(text) ?? (await encodeIds(tokenizer.encode(text))).map(({ data }) => data);
      kept.delete(text);
      kept.set(text, embeddings);
      if (kept.size > KEPT_TEXTS) kept.delete(kept.keys().next().value!);
      return embeddings;
    },
  };
}

/** The output of a text encoder that Stable Diffusion 1.x and its kin read: the last layer's, normalized. */
export function lastHiddenState({ outputs }: OnnxSession): string {
  return (outputs.find(({ name }) => name === 'last_hidden_state') ?? outputs[0]!).name;
}
