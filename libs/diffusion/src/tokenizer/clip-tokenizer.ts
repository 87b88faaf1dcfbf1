import { Tokenizer } from '@huggingface/tokenizers';
import type { TokenizerFiles } from './tokenizer-files.ts';

/** Turns a prompt into what the text encoder reads. */
export interface ClipTokenizer {
  /** Length of what `encode` returns. */
  readonly maxTokens: number;
  /** Token ids: start, the text's tokens as far as there is room, end, padding. */
  encode(text: string): number[];
}

/**
 * Makes the counterpart of transformers' `CLIPTokenizer` called with `padding="max_length", truncation=True`.
 *
 * @throws Error if the definition is not one that `@huggingface/tokenizers` can run.
 */
export function createClipTokenizer({ definition, startId, endId, padId, maxTokens }: TokenizerFiles): ClipTokenizer {
  const tokenizer = new Tokenizer(definition, {});
  return {
    maxTokens,
    encode(text) {
      // Start and end are set here and not by the tokenizer's template: what is too long is cut before the end mark.
      const { ids } = tokenizer.encode(text, { add_special_tokens: false });
      const row = [startId, ...ids.slice(0, maxTokens - 2), endId];
      while (row.length < maxTokens) row.push(padId);
      return row;
    },
  };
}
