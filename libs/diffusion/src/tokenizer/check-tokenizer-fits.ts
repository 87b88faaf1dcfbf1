import type { TextEncoderConfig } from '../model-configs.ts';
import { modelFileError } from '../model-file.ts';
import type { TokenizerFiles } from './tokenizer-files.ts';

/** Rows of an embedding are often filled up to the next multiple of this. */
const padding = 128;

/**
 * Checks that a text encoder reads what its tokenizer writes. An encoder that knows many more tokens was trained with
 * another tokenizer: it would run, and make other pictures than were asked for.
 *
 * @param configFile the encoder's, relative to the model's directory.
 * @throws DarkroomError `model_unsupported` naming the tokenizer's file.
 */
export function checkTokenizerFits(
  { folder, vocabularyFile, highestId, maxTokens }: TokenizerFiles,
  { vocab_size: known, max_position_embeddings: positions }: TextEncoderConfig,
  configFile: string,
): void {
  if (highestId >= known || highestId < known - padding) {
    const expected = `the text encoder was made for ${known} tokens (vocab_size of ${configFile})`;
    throw modelFileError(vocabularyFile, `has ids up to ${highestId}, but ${expected}`);
  }
  if (maxTokens > positions) {
    const expected = `the text encoder reads ${positions} (max_position_embeddings of ${configFile})`;
    throw modelFileError(`${folder}/tokenizer_config.json`, `model_max_length: is ${maxTokens}, but ${expected}`);
  }
}
