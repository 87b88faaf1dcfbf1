import { createClipTokenizer } from './clip-tokenizer.ts';
import type { GlmTokenizerFiles } from './glm-tokenizer-files.ts';
import { createGlmTokenizer } from './glm-tokenizer.ts';
import type { PromptTokenizer } from './prompt-tokenizer.ts';
import type { T5TokenizerFiles } from './t5-tokenizer-files.ts';
import { createT5Tokenizer } from './t5-tokenizer.ts';
import type { TokenizerFiles } from './tokenizer-files.ts';

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
