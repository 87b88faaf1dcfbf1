import { createClipTokenizer } from './clip-tokenizer.ts';
import type { GlmTokenizerFiles } from './glm-tokenizer-files.ts';
import { createGlmTokenizer } from './glm-tokenizer.ts';
import type { T5TokenizerFiles } from './t5-tokenizer-files.ts';
import { createT5Tokenizer } from './t5-tokenizer.ts';
import type { TokenizerFiles } from './tokenizer-files.ts';

/** What a text encoder reads of a text. */
export interface TokenizedPrompt {
  readonly ids: readonly number[];
  /** Tokens at the text's end that there was no room for; 0 where all of it is read. */
  readonly cutTokens: number;
}

/** Turns prompts into what a text encoder reads. */
export interface PromptTokenizer {
  /** The longest row of ids that `encode` returns. */
  readonly maxTokens: number;
  /** Tokenizes a text as the family's Python original does, with its special tokens, its padding and its way to cut. */
  encode(text: string): TokenizedPrompt;
  /** A row of the kind that `encode` returns, with the highest id there is: to try the encoder with. */
  readonly trialIds: readonly number[];
}

/** The files of any kind of tokenizer. */
export type PromptTokenizerFiles = TokenizerFiles | T5TokenizerFiles | GlmTokenizerFiles;

/**
 * Makes the tokenizer of one of a model's text encoders.
 *
 * @throws Error if the definition is not one that `@huggingface/tokenizers` can run.
 */
export function createPromptTokenizer(files: PromptTokenizerFiles): PromptTokenizer {
  if (files.kind === 'clip') return createClipTokenizer(files);
  return files.kind === 't5' ? createT5Tokenizer(files) : createGlmTokenizer(files);
}
