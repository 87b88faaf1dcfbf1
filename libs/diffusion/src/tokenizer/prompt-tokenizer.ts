import { Tokenizer } from '@huggingface/tokenizers';
import { modelFileError } from '../model/model-file.ts';
import { createCharsmapNormalizer } from './precompiled-charsmap.ts';
import type { TokenizerFiles } from './tokenizer-files.ts';

/** GLM's rows of ids are filled up to the next multiple of this. */
const block = 16;

/**
 * Turns prompts into what a text encoder reads, as the family's Python original does.
 *
 * CLIP and T5 are the counterparts of transformers' `CLIPTokenizer` and `T5TokenizerFast` called with
 * `padding="max_length", truncation=True`: start, the text's tokens as far as there is room, end, padding. GLM is what
 * `CogView4Pipeline` does: before all the padding, which the text encoder reads as it reads any token, to a whole block.
 *
 * Known limit: U+0085 (next line) is white space to T5 there, and an unknown token here.
 */
export class PromptTokenizer {
  /** The longest row of ids that `encode` returns. */
  readonly maxTokens: number;
  /** A row of the kind that `encode` returns, with the highest id there is: to try the encoder with. */
  readonly trialIds: readonly number[];
  readonly #files: TokenizerFiles;
  readonly #tokenizer: Tokenizer;
  readonly #startIds: readonly number[];

  /** @throws DarkroomError `model_unsupported` if tokenizer.json has a part that is not known, or GLM's has no marks. */
  constructor(files: TokenizerFiles) {
    const isGlm = files.kind === 'glm';
    this.#files = files;
    this.#tokenizer = createTokenizer(files);
    this.#startIds = isGlm ? marksOf(this.#tokenizer, files) : files.startIds;
    this.maxTokens = files.maxTokens;
    // Longer than GLM's need be: an export that reads texts of one length only is found so.
    this.trialIds = this.#rowOf([files.highestId], 2 * block);
  }

  /** What the text encoder reads of a text. `cutTokens`: at its end that there was no room for; 0 where all of it is read. */
  encode(text: string): { ids: readonly number[]; cutTokens: number } {
    // Marks are set here and not by the tokenizer's template: what is too long is cut before the end mark.
    const { ids } = this.#tokenizer.encode(text, { add_special_tokens: false });
    return { ids: this.#rowOf(ids), cutTokens: Math.max(0, ids.length - this.#room) };
  }

  get #room(): number {
    return this.maxTokens - this.#startIds.length - this.#files.endIds.length;
  }

  #rowOf(ids: readonly number[], least = 0): number[] {
    const { kind, endIds, padId } = this.#files;
    const tokens = [...this.#startIds, ...ids.slice(0, this.#room), ...endIds];
    const length = kind === 'glm' ? Math.max(least, Math.ceil(tokens.length / block) * block) : this.maxTokens;
    const padding = Array.from({ length: length - tokens.length }, () => padId);
    return kind === 'glm' ? [...padding, ...tokens] : [...tokens, ...padding];
  }
}

/** What is used of the library's normalizers. */
interface Normalizer {
  normalize: (text: string) => string;
  /** Of a sequence. */
  readonly normalizers?: readonly Normalizer[];
  /** SentencePiece's table, which the library leaves unread. */
  readonly charsmap?: string;
}

function createTokenizer({ definition, vocabularyFile }: TokenizerFiles): Tokenizer {
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

/** `[gMASK]` and `<sop>`, by the template of tokenizer.json. Without them an empty text would be no tokens at all. */
function marksOf(tokenizer: Tokenizer, { vocabularyFile }: TokenizerFiles): number[] {
  const { ids: marks } = tokenizer.encode('');
  const [text] = tokenizer.encode('a', { add_special_tokens: false }).ids;
  const { ids: whole } = tokenizer.encode('a');
  if (marks.length > 0 && whole.length === marks.length + 1 && whole.at(-1) === text) return marks;
  throw modelFileError(vocabularyFile, 'post_processor: must put marks before each text, such as [gMASK] <sop>');
}
