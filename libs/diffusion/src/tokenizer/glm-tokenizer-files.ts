import { z } from 'zod';
import { checkModelJson, modelFileError, readModelJson } from '../model/model-file.ts';
import { readTokenizerConfig, specialTokenSchema, type TokenizerFilesOf } from './tokenizer-config.ts';

/** What a GLM tokenizer is made from. */
export type GlmTokenizerFiles = TokenizerFilesOf<'glm'>;

/**
 * What `CogView4Pipeline` cuts at unless told otherwise (`max_sequence_length`). The tokenizer's own model_max_length is
 * that of a language model for long texts.
 */
const maxTokens = 1024;

const configSchema = z.looseObject({ pad_token: specialTokenSchema.default('<|endoftext|>') });

const definitionSchema = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: z.number().int().min(0), content: z.string() })),
  model: z.looseObject({ type: z.literal('BPE'), vocab: z.record(z.string(), z.number().int().min(0)) }),
});

/**
 * Reads a GLM tokenizer of a model's directory.
 *
 * @param folder relative to the directory.
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readGlmTokenizerFiles(directory: string, folder: string): Promise<GlmTokenizerFiles> {
  const vocabularyFile = `${folder}/tokenizer.json`;
  const { config, fileOf } = await readTokenizerConfig(directory, folder, configSchema);
  const definition = checkModelJson(vocabularyFile, await readModelJson(directory, vocabularyFile), definitionSchema);
  const ids = new Map(Object.entries(definition.model.vocab));
  for (const { content, id } of definition.added_tokens) ids.set(content, id);
  const padId = ids.get(config.pad_token);
  if (padId === undefined) {
    throw modelFileError(
      fileOf('pad_token'),
      `pad_token: ${JSON.stringify(config.pad_token)} is not in the vocabulary`,
    );
  }
  const highestId = [...ids.values()].reduce((highest, id) => Math.max(highest, id), 0);
  return { kind: 'glm', definition, padId, highestId, folder, vocabularyFile, maxTokens };
}
