/** Weights of a prompt's tokens, and prompts in several chunks. */
import { itemAt } from '@darkroom/core';
import type { WeightedText } from '@darkroom/kinds';
import type { FloatTensor } from '@darkroom/runtime';
import type { PromptTokenizer } from '../tokenizer/prompt-tokenizer.ts';

/** Maximum chunks of a prompt. Each makes every step of its image slower. */
export const maxPromptChunks = 4;

/** Token ids for one call of a text encoder. */
export interface PromptChunk {
  readonly ids: readonly number[];
  /** One per id; 1 for special tokens and padding. */
  readonly weights: readonly number[];
  /** Tokens of the text. */
  readonly textTokens: number;
}

/** Splits a prompt into chunks, at least one; the chunks after its end are empty. */
export function chunksOf(tokenizer: PromptTokenizer, parts: readonly WeightedText[], minChunks = 1): PromptChunk[] {
  const { ids, weights } = tokenizer.encodeParts(parts);
  const { maxTextTokens: length } = tokenizer;
  const count = Math.max(minChunks, Math.ceil(ids.length / length));
  return Array.from({ length: count }, (_, at) => {
    const [from, to] = [at * length, (at + 1) * length];
    const part = { ids: ids.slice(from, to), weights: weights.slice(from, to) };
    return { ...tokenizer.rowOfParts(part), textTokens: part.ids.length };
  });
}

/**
 * Moves each token's embedding away from that of an empty text: empty + weight × (embedding − empty). A weight of 1
 * leaves it unchanged, 0 leaves the empty text. Outputs that are not per token do not change.
 * Source: ComfyUI `comfy/sd1_clip.py`, `encode_token_weights`; compel `build_weighted_embedding_tensor`.
 */
export function applyWeights(
  outputs: readonly FloatTensor[],
  empty: readonly Float32Array[],
  weights: readonly number[],
): FloatTensor[] {
  return outputs.map((output, at) => {
    if (!isPerToken(output.dims)) return output;
    const emptyData = itemAt(empty, at);
    const width = output.data.length / weights.length;
    const data = output.data.map((value, position) => {
      const weight = Math.fround(weights[Math.floor(position / width)] ?? 1);
      if (weight === 1) return value;
      const emptyValue = emptyData[position] ?? 0;
      return emptyValue + Math.fround(Math.fround(value - emptyValue) * weight);
    });
    return { ...output, data };
  });
}

/** True if an output has a vector for each token, not one for the text. */
export function isPerToken(dims: readonly number[]): boolean {
  return dims.length === 3;
}

/** Joins arrays in their order. */
export function concatenate(arrays: readonly Float32Array[]): Float32Array {
  const joined = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const array of arrays) {
    joined.set(array, offset);
    offset += array.length;
  }
  return joined;
}
