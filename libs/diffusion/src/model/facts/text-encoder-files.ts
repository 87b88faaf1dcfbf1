import { z } from 'zod';
import { count, modelFileError, readModelConfig, unlessMissing } from '../model-file.ts';
import type { TokenizerFolder } from '../pipeline-classes.ts';
import { readTokenizerFiles, type TokenizerFiles } from '../../tokenizer/tokenizer-files.ts';

/** What the files beside a text encoder's graph say. */
export interface TextEncoderFiles {
  readonly tokenizer: TokenizerFiles;
  /** Numbers it gives for each token; undefined where there is no config.json. */
  readonly width?: number;
  /** Numbers it gives for the whole text, where it has a projection. */
  readonly pooledWidth?: number | undefined;
  /** How many layers it has, where its config.json says so. */
  readonly layers?: number | undefined;
}

const schema = z.looseObject({
  /** Ids that there are embeddings for: all below this. */
  vocab_size: count,
  /** The longest text it reads. */
  max_position_embeddings: count,
  hidden_size: count,
  /** Width of the pooled embedding, where the encoder has a projection. */
  projection_dim: count.optional(),
  num_hidden_layers: count.optional(),
});

/** T5 has no table of positions. */
const t5Schema = z
  .looseObject({ vocab_size: count, d_model: count })
  .transform(({ vocab_size, d_model }) => ({ vocab_size, hidden_size: d_model, max_position_embeddings: Infinity }));

type TextEncoderConfig = z.infer<typeof t5Schema> & Partial<z.infer<typeof schema>>;

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
  const configSchema: z.ZodType<TextEncoderConfig> = kind === 't5' ? t5Schema : schema;
  const [tokenizer, config] = await Promise.all([
    readTokenizerFiles(directory, folder, kind),
    // Old exports have none; what it would have told is then seen when the graph is tried.
    unlessMissing(readModelConfig(directory, file, configSchema)),
  ]);
  if (config === undefined) return { tokenizer };
  checkTokenizerFits(tokenizer, config, file);
  const { hidden_size: width, projection_dim: pooledWidth, num_hidden_layers: layers } = config;
  return { tokenizer, width, pooledWidth, layers };
}

/** Rows of an embedding are often filled up to the next multiple of this; GLM-4's has 209 to spare. */
const padding = 256;

/**
 * Checks that a text encoder reads what its tokenizer writes. An encoder that knows many more tokens was trained with
 * another tokenizer: it would run, and make other pictures than were asked for.
 */
function checkTokenizerFits(
  { kind, folder, vocabularyFile, highestId, maxTokens }: TokenizerFiles,
  { vocab_size: known, max_position_embeddings: positions }: TextEncoderConfig,
  configFile: string,
): void {
  if (highestId >= known || highestId < known - padding) {
    const expected = `the text encoder was made for ${known} tokens (vocab_size of ${configFile})`;
    throw modelFileError(vocabularyFile, `has ids up to ${highestId}, but ${expected}`);
  }
  // Others are cut where their pipeline says.
  if (kind === 'clip' && maxTokens > positions) {
    const expected = `the text encoder reads ${positions} (max_position_embeddings of ${configFile})`;
    throw modelFileError(`${folder}/tokenizer_config.json`, `model_max_length: is ${maxTokens}, but ${expected}`);
  }
}
