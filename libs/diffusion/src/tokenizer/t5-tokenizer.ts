import { Tokenizer } from '@huggingface/tokenizers';
import { modelFileError } from '../model/model-file.ts';
import { createCharsmapNormalizer } from './precompiled-charsmap.ts';
import type { PromptTokenizer } from './prompt-tokenizer.ts';
import type { T5TokenizerFiles } from './t5-tokenizer-files.ts';

/**
 * Makes the counterpart of transformers' `T5TokenizerFast` called with `padding="max_length", truncation=True` and the
 * pipeline's `max_length`: the text's tokens as far as there is room, end, padding.
 *
 * Known limit: U+0085 (next line) is white space there, and an unknown token here.
 *
 * @throws DarkroomError `model_unsupported` if tokenizer.json has a part that is not known.
 */
export function createT5Tokenizer(files: T5TokenizerFiles): PromptTokenizer {
  const { endId, padId, highestId, maxTokens } = files;
  const tokenizer = createTokenizer(files);
  const room = maxTokens - 1;

  function rowOf(ids: readonly number[]): number[] {
    const row = [...ids.slice(0, room), endId];
    while (row.length < maxTokens) row.push(padId);
    return row;
  }

  return {
    maxTokens,
    trialIds: rowOf([highestId]),
    encode(text) {
      // The end is set here and not by the tokenizer's template: what is too long is cut before it.
      const { ids } = tokenizer.encode(text, { add_special_tokens: false });
      return { ids: rowOf(ids), cutTokens: Math.max(0, ids.length - room) };
    },
  };
}

/** What is used of the library's normalizers. */
interface Normalizer {
  normalize: (text: string) => string;
  /** Of a sequence. */
  readonly normalizers?: readonly Normalizer[];
  /** SentencePiece's table, which the library leaves unread. */
  readonly charsmap?: string;
}

function createTokenizer({ definition, vocabularyFile }: T5TokenizerFiles): Tokenizer {
  try {
    const tokenizer = new Tokenizer(definition, {});
    const normalizer = tokenizer.normalizer as Normalizer | null;
    for (const part of normalizer?.normalizers ?? [normalizer]) {
      if (part?.charsmap !== undefined) part.normalize = createCharsmapNormalizer(part.charsmap);
    }
    return tokenizer;
  } catch (error) {
    throw modelFileError(vocabularyFile, `cannot be used: ${(error as Error).message}`, error);
  }
}
