import { z } from 'zod';
import { checkModelJson, readModelJson, unlessMissing } from '../model/model-file.ts';

/** What every tokenizer is made from. */
export interface TokenizerFilesOf<Kind extends string> {
  readonly kind: Kind;
  /** The structure of a tokenizer.json. */
  readonly definition: Readonly<Record<string, unknown>>;
  /** The token id that texts are filled up with. */
  readonly padId: number;
  /** The highest token id there is. */
  readonly highestId: number;
  /** Relative to the model's directory. */
  readonly folder: string;
  /** Which file the ids come from, relative to the model's directory. */
  readonly vocabularyFile: string;
  /** Tokens of a text that the model reads, marks at its ends included. */
  readonly maxTokens: number;
}

/** A token as tokenizer_config.json has it: the text, or an object with the text. */
export const specialTokenSchema = z.union([
  z.string(),
  z.looseObject({ content: z.string() }).transform(({ content }) => content),
]);

const fieldsSchema = z.record(z.string(), z.unknown());

/** What the small files beside a tokenizer's vocabulary say. */
export interface TokenizerConfigFiles<Config> {
  readonly config: Config;
  /** Which of them a field is from, relative to the model's directory. */
  readonly fileOf: (field: string) => string;
}

/**
 * Reads tokenizer_config.json. Where that does not list all added tokens itself, as newer ones do, special_tokens_map.json
 * counts before it, as in transformers: the padding of Stable Diffusion 2 is only there.
 *
 * @param folder relative to the directory.
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readTokenizerConfig<Config>(
  directory: string,
  folder: string,
  schema: z.ZodType<Config>,
): Promise<TokenizerConfigFiles<Config>> {
  const configFile = `${folder}/tokenizer_config.json`;
  const mapFile = `${folder}/special_tokens_map.json`;
  const config = checkModelJson(configFile, await readModelJson(directory, configFile), fieldsSchema);
  const isComplete = config['added_tokens_decoder'] !== undefined;
  const map = isComplete ? undefined : await unlessMissing(readModelJson(directory, mapFile));
  const tokens = map === undefined ? {} : checkModelJson(mapFile, map, fieldsSchema);
  checkModelJson(configFile, config, schema);
  return {
    config: checkModelJson(mapFile, { ...config, ...tokens }, schema),
    fileOf: (field) => (Object.hasOwn(tokens, field) ? mapFile : configFile),
  };
}
