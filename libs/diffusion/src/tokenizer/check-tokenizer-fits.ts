import type { TextEncoderConfig } from '../model/model-configs.ts';
import { modelFileError } from '../model/model-file.ts';
import type { PromptTokenizerFiles } from './create-prompt-tokenizer.ts';

/** Rows of an embedding are often filled up to the next multiple of this; GLM-4's has 209 to spare. */
const padding = 256;

/**
 * Checks that a text encoder reads what its tokenizer writes. An encoder that knows many more tokens was trained with
 * another tokenizer: it would run, and make other pictures than were asked for.
 *
 * @param configFile the encoder's, relative to the model's directory.
 * @throws DarkroomError `model_unsupported` naming the tokenizer's file.
 */
export function checkTokenizerFits(
  { kind, folder, vocabularyFile, highestId, maxTokens }: PromptTokenizerFiles,
  { vocab_size: known, max_position_embeddings: positions }: TextEncoderConfig,
  configFile: string,
): void {
  if (highestId >= known || highestId < known - padding) {
    const expected = `the text encoder was made for ${known} tokens (vocab_size of ${configFile})`;
    throw modelFileError(vocabularyFile, `has ids up to ${highestId}, but ${expected}`);
  }
  // Others are cut where their pipeline says, and their encoders have no table of positions.
  if (kind === 'clip' && positions !== undefined && maxTokens > positions) {
    const expected = `the text encoder reads ${positions} (max_position_embeddings of ${configFile})`;
    throw modelFileError(`${folder}/tokenizer_config.json`, `model_max_length: is ${maxTokens}, but ${expected}`);
  }
}
