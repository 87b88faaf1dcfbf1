import { z } from 'zod';
import { positiveInteger, modelFileError, readModelConfig, unlessMissing } from '@darkroom/runtime/model-file';
import type { TokenizerFolder } from './pipeline-classes.ts';
import { readTokenizerFiles, type TokenizerFiles } from '../../tokenizer/tokenizer-files.ts';

/** The fields of a text encoder's tokenizer and configuration files. */
export interface TextEncoderFiles {
  readonly tokenizer: TokenizerFiles;
  /** Width of its output per token; undefined without a config.json. */
  readonly width?: number;
  /** Width of its pooled output, if it has a projection. */
  readonly pooledWidth?: number;
  /** Number of layers, if its config.json has it. */
  readonly layers?: number;
}

/** The text encoders of a model, in the order of its pipeline's class. */
export type TextEncoders = readonly [TextEncoderFiles, ...TextEncoderFiles[]];

const schema = z.looseObject({
  /** Size of the embedding table: ids are below this. */
  vocab_size: positiveInteger,
  /** Maximum number of tokens. */
  max_position_embeddings: positiveInteger,
  hidden_size: positiveInteger,
  /** Width of the pooled embedding, if the encoder has a projection. */
  projection_dim: positiveInteger.optional(),
  num_hidden_layers: positiveInteger.optional(),
});

/** T5 has no position table, so no maximum length. */
const t5Schema = z
  .looseObject({ vocab_size: positiveInteger, d_model: positiveInteger })
  .transform(({ vocab_size, d_model }) => ({ vocab_size, hidden_size: d_model, max_position_embeddings: Infinity }));

type TextEncoderConfig = z.infer<typeof t5Schema> & Partial<z.infer<typeof schema>>;

/**
 * Reads the tokenizer and configuration of one of a model's text encoders.
 *
 * @throws DarkroomError `model_unsupported` naming the file that is missing, invalid or for another encoder.
 */
export async function readTextEncoderFiles(
  directory: string,
  { folder, kind, encoder }: TokenizerFolder,
): Promise<TextEncoderFiles> {
  const file = `${encoder}/config.json`;
  const configSchema: z.ZodType<TextEncoderConfig> = kind === 't5' ? t5Schema : schema;
  const [tokenizer, config] = await Promise.all([
    readTokenizerFiles(directory, folder, kind),
    // Old exports have no config.json; a misfit then shows when the graph is tried.
    unlessMissing(readModelConfig(directory, file, configSchema)),
  ]);
  if (config === undefined) return { tokenizer };
  checkTokenizerFits(tokenizer, config, file);
  const { hidden_size: width, projection_dim: pooledWidth, num_hidden_layers: layers } = config;
  return { tokenizer, width, pooledWidth, layers };
}

/** Embedding tables are often padded to a multiple of this. GLM-4's has 209 unused rows. */
const padding = 256;

/**
 * Checks that the tokenizer's ids fit the encoder's embedding table. An encoder with many more ids was trained with
 * another tokenizer: it would run, but make images of other prompts.
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
  // Other kinds are truncated by their pipelines.
  if (kind === 'clip' && maxTokens > positions) {
    const expected = `the text encoder reads ${positions} (max_position_embeddings of ${configFile})`;
    throw modelFileError(`${folder}/tokenizer_config.json`, `model_max_length: is ${maxTokens}, but ${expected}`);
  }
}
