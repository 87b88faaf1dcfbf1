import type { FloatTensor, OnnxSession } from '@darkroom/runtime';
import { createClipTokenizer } from '../tokenizer/clip-tokenizer.ts';
import type { TokenizerFiles } from '../tokenizer/tokenizer-files.ts';

/** Texts whose embeddings are kept: most requests share their negative prompt, and often it is empty. */
const KEPT_TEXTS = 32;

/** Turns texts into what the UNet's cross-attention reads. */
export interface PromptEncoder {
  /**
   * The text encoder's last hidden state, maxTokens × width. Shared between callers: read only. Always encoded alone, so
   * that a text's numbers do not depend on which others came with it.
   *
   * @throws DarkroomError if the graph fails.
   */
  encode(text: string): Promise<Float32Array>;
  /** The same of one row of token ids, as long as the tokenizer makes it; not kept. */
  encodeIds(ids: readonly number[]): Promise<FloatTensor>;
}

/** Makes a prompt encoder of a tokenizer and a loaded CLIP text encoder. */
export function createPromptEncoder(files: TokenizerFiles, session: OnnxSession): PromptEncoder {
  const tokenizer = createClipTokenizer(files);
  const isInt32 = session.inputs.find(({ name }) => name === 'input_ids')?.type === 'int32';
  const output = session.outputs.find(({ name }) => name === 'last_hidden_state') ?? session.outputs[0]!;
  // In order of use, the oldest first.
  const kept = new Map<string, Float32Array>();

  function encodeIds(ids: readonly number[]): Promise<FloatTensor> {
    const data = isInt32 ? Int32Array.from(ids) : BigInt64Array.from(ids, BigInt);
    return session.run({ input_ids: { data, dims: [1, ids.length] } }, output.name);
  }

  return {
    encodeIds,
    async encode(text) {
      const embedding = kept.get(text) ?? (await encodeIds(tokenizer.encode(text))).data;
      kept.delete(text);
      kept.set(text, embedding);
      if (kept.size > KEPT_TEXTS) kept.delete(kept.keys().next().value!);
      return embedding;
    },
  };
}
