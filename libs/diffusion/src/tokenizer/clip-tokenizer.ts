import { Tokenizer } from '@huggingface/tokenizers';
import type { PromptTokenizer } from './prompt-tokenizer.ts';
import type { TokenizerFiles } from './tokenizer-files.ts';

/**
 * Makes the counterpart of transformers' `CLIPTokenizer` called with `padding="max_length", truncation=True`: start, the
 * text's tokens as far as there is room, end, padding.
 *
 * @throws Error if the definition is not one that `@huggingface/tokenizers` can run.
 */
export function createClipTokenizer(files: TokenizerFiles): PromptTokenizer {
  const { definition, startId, endId, padId, highestId, maxTokens } = files;
  const tokenizer = new Tokenizer(definition, {});
  const room = maxTokens - 2;

  function rowOf(ids: readonly number[]): number[] {
    const row = [startId, ...ids.slice(0, room), endId];
    while (row.length < maxTokens) row.push(padId);
    return row;
  }

  return {
    maxTokens,
    trialIds: rowOf([highestId]),
    encode(text) {
      // Start and end are set here and not by the tokenizer's template: what is too long is cut before the end mark.
      const { ids } = tokenizer.encode(text, { add_special_tokens: false });
      return { ids: rowOf(ids), cutTokens: Math.max(0, ids.length - room) };
    },
  };
}
