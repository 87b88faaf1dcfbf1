import { Tokenizer } from '@huggingface/tokenizers';
import type { WeightedText } from '@darkroom/kinds';
import { modelFileError } from '@darkroom/runtime/model-file';
import { createCharsmapNormalizer } from './precompiled-charsmap.ts';
import type { TokenizerFiles } from './tokenizer-files.ts';

/** GLM's token ids are padded to a multiple of this. */
const block = 16;

/**
 * Converts prompts to a text encoder's token ids, as the family's Python original does. CLIP and T5 equal transformers'
 * `CLIPTokenizer` and `T5TokenizerFast` with `padding="max_length", truncation=True`. GLM equals `CogView4Pipeline`:
 * padding comes first, up to a complete block, and the encoder attends to it.
 *
 * Known limit: U+0085 (next line) is white space for transformers' T5, and an unknown token here.
 */
export class PromptTokenizer {
  /** Maximum length of the ids that `encode` returns. */
  readonly maxTokens: number;
  /** Ids like those of `encode`, with the highest id of the vocabulary: for trying the encoder. */
  readonly trialIds: readonly number[];
  readonly #files: TokenizerFiles;
  readonly #tokenizer: Tokenizer;
  readonly #startIds: readonly number[];

  /**
   * Creates a tokenizer. @throws DarkroomError `model_unsupported` if tokenizer.json has an unknown part, or GLM's has
   * no special tokens before the text.
   */
  constructor(files: TokenizerFiles) {
    const isGlm = files.kind === 'glm';
    this.#files = files;
    this.#tokenizer = createTokenizer(files);
    this.#startIds = isGlm ? specialTokensOf(this.#tokenizer, files) : files.startIds;
    this.maxTokens = files.maxTokens;
    // Two blocks for GLM: this detects an export that reads only texts of one block.
    this.trialIds = this.#rowOf([files.highestId], 2 * block);
  }

  /** Returns the token ids of a text. `cutTokens` is the number of tokens cut off at its end. */
  encode(text: string): { ids: readonly number[]; cutTokens: number } {
    // Add special tokens here, not by the tokenizer's template: long texts are cut before the end token.
    const { ids } = this.#tokenizer.encode(text, { add_special_tokens: false });
    return { ids: this.#rowOf(ids), cutTokens: Math.max(0, ids.length - this.maxTextTokens) };
  }

  /** Returns the ids of texts, without special tokens, and each id's weight: that of its text. */
  encodeParts(parts: readonly WeightedText[]): { ids: number[]; weights: number[] } {
    const encoded = parts.map(({ text, weight }) => {
      const { ids } = this.#tokenizer.encode(text, { add_special_tokens: false });
      return { ids, weights: ids.map(() => weight) };
    });
    return { ids: encoded.flatMap(({ ids }) => ids), weights: encoded.flatMap(({ weights }) => weights) };
  }

  /** Returns a row of ids as `encode` returns, of token ids without special tokens, and each id's weight. */
  rowOfParts({ ids, weights }: { ids: readonly number[]; weights: readonly number[] }) {
    const row = this.#rowOf(ids);
    const start = this.#startIds.length;
    return { ids: row, weights: row.map((_, at) => weights[at - start] ?? 1) };
  }

  /** Maximum tokens of a text, without special tokens. */
  get maxTextTokens(): number {
    return this.maxTokens - this.#startIds.length - this.#files.endIds.length;
  }

  #rowOf(ids: readonly number[], minLength = 0): number[] {
    const { kind, endIds, padId } = this.#files;
    const tokens = [...this.#startIds, ...ids.slice(0, this.maxTextTokens), ...endIds];
    const length = kind === 'glm' ? Math.max(minLength, Math.ceil(tokens.length / block) * block) : this.maxTokens;
    const padding = Array.from({ length: length - tokens.length }, () => padId);
    return kind === 'glm' ? [...padding, ...tokens] : [...tokens, ...padding];
  }
}

/** The parts of the library's normalizers that are used here. */
interface Normalizer {
  normalize: (text: string) => string;
  /** The members of a sequence. */
  readonly normalizers?: readonly Normalizer[];
  /** SentencePiece's table, which the library ignores. */
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

/**
 * Returns `[gMASK]` and `<sop>`, from the template in tokenizer.json. Without them an empty text would have no tokens.
 */
function specialTokensOf(tokenizer: Tokenizer, { vocabularyFile }: TokenizerFiles): number[] {
  const { ids: specialTokens } = tokenizer.encode('');
  const [text] = tokenizer.encode('a', { add_special_tokens: false }).ids;
  const { ids: full } = tokenizer.encode('a');
  if (specialTokens.length > 0 && full.length === specialTokens.length + 1 && full.at(-1) === text)
    return specialTokens;
  throw modelFileError(
    vocabularyFile,
    'post_processor: must add special tokens before each text, such as [gMASK] <sop>',
  );
}
