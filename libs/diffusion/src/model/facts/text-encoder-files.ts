import { textEncoderConfigSchemas } from '../model-configs.ts';
import { checkModelJson, readModelJson, unlessMissing } from '../model-file.ts';
import type { TokenizerFolder, TokenizerKind } from '../pipeline-classes.ts';
import { checkTokenizerFits } from '../../tokenizer/check-tokenizer-fits.ts';
import { readGlmTokenizerFiles } from '../../tokenizer/glm-tokenizer-files.ts';
import type { PromptTokenizerFiles } from '../../tokenizer/create-prompt-tokenizer.ts';
import { readT5TokenizerFiles } from '../../tokenizer/t5-tokenizer-files.ts';
import { readTokenizerFiles } from '../../tokenizer/tokenizer-files.ts';

/** What the files beside a text encoder's graph say. */
export interface TextEncoderFiles {
  readonly tokenizer: PromptTokenizerFiles;
  /** Numbers it gives for each token; undefined where there is no config.json. */
  readonly width: number | undefined;
  /** Numbers it gives for the whole text, where it has a projection. */
  readonly pooledWidth: number | undefined;
  /** How many layers it has, where its config.json says so. */
  readonly layers: number | undefined;
}

type ReadTokenizer = (directory: string, folder: string) => Promise<PromptTokenizerFiles>;

const tokenizerReaders: Readonly<Record<TokenizerKind, ReadTokenizer>> = {
  clip: readTokenizerFiles,
  t5: readT5TokenizerFiles,
  glm: readGlmTokenizerFiles,
};

/**
 * Reads what belongs to one of a model's text encoders.
 *
 * @throws DarkroomError `model_unsupported` naming the file that is missing, wrong or of another encoder.
 */
export async function readTextEncoderFiles(
  directory: string,
  { folder, kind, encoder }: TokenizerFolder,
): Promise<TextEncoderFiles> {
  const file = `${encoder}/config.json`;
  const [tokenizer, json] = await Promise.all([
    tokenizerReaders[kind](directory, folder),
    // Old exports have none; what it would have told is then seen when the graph is tried.
    unlessMissing(readModelJson(directory, file)),
  ]);
  if (json === undefined) return { tokenizer, width: undefined, pooledWidth: undefined, layers: undefined };
  const config = checkModelJson(file, json, textEncoderConfigSchemas[kind]);
  checkTokenizerFits(tokenizer, config, file);
  const { hidden_size: width, projection_dim: pooledWidth, num_hidden_layers: layers } = config;
  return { tokenizer, width, pooledWidth, layers };
}
