import { Tokenizer } from '@huggingface/tokenizers';
import { modelFileError } from '../model/model-file.ts';
import type { GlmTokenizerFiles } from './glm-tokenizer-files.ts';
import type { PromptTokenizer } from './prompt-tokenizer.ts';

/** Rows of ids are filled up to the next multiple of this. */
const block = 16;

/**
 * Makes what `CogView4Pipeline` does with GLM's tokenizer: the marks that come before each text, the text's tokens as far
 * as there is room, and before them all the padding. The text encoder reads the padding as it reads any token.
 *
 * @throws DarkroomError `model_unsupported` if tokenizer.json has a part that is not known, or puts no marks before a text.
 */
export function createGlmTokenizer(files: GlmTokenizerFiles): PromptTokenizer {
  const { padId, highestId, maxTokens } = files;
  const tokenizer = createTokenizer(files);
  const marks = marksOf(tokenizer, files);
  const room = maxTokens - marks.length;

  function rowOf(ids: readonly number[], least = block): number[] {
    const tokens = [...marks, ...ids.slice(0, room)];
    const length = Math.max(least, Math.ceil(tokens.length / block) * block);
    return [...Array.from({ length: length - tokens.length }, () => padId), ...tokens];
  }

  return {
    maxTokens,
    // Longer than need be: an export that reads texts of one length only is found so.
    trialIds: rowOf([highestId], 2 * block),
    encode(text) {
      const { ids } = tokenizer.encode(text, { add_special_tokens: false });
      return { ids: rowOf(ids), cutTokens: Math.max(0, ids.length - room) };
    },
  };
}

function createTokenizer({ definition, vocabularyFile }: GlmTokenizerFiles): Tokenizer {
  try {
    return new Tokenizer(definition, {});
  } catch (error) {
    throw modelFileError(vocabularyFile, `cannot be used: ${(error as Error).message}`, error);
  }
}

/** `[gMASK]` and `<sop>`, by the template of tokenizer.json. Without them an empty text would be no tokens at all. */
function marksOf(tokenizer: Tokenizer, { vocabularyFile }: GlmTokenizerFiles): number[] {
  const { ids: marks } = tokenizer.encode('');
  const [text] = tokenizer.encode('a', { add_special_tokens: false }).ids;
  const { ids: whole } = tokenizer.encode('a');
  if (marks.length > 0 && whole.length === marks.length + 1 && whole.at(-1) === text) return marks;
  throw modelFileError(vocabularyFile, 'post_processor: must put marks before each text, such as [gMASK] <sop>');
}
