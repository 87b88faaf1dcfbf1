/**
 * The files of a T5 tokenizer: tokenizer.json, which has all of it. The spiece.model that some repositories have in its
 * place is SentencePiece's own format, which nothing here reads.
 */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { checkModelJson, modelFileError, readModelJson, unlessMissing } from '../model/model-file.ts';
import { readTokenizerConfig, specialTokenSchema, type TokenizerFilesOf } from './tokenizer-config.ts';

/** What a T5 tokenizer is made from. */
export interface T5TokenizerFiles extends TokenizerFilesOf<'t5'> {
  /** Token id. */
  readonly endId: number;
}

/** The `max_sequence_length` of diffusers' StableDiffusion3Pipeline, which does not ask for the `model_max_length`. */
const maxTokens = 256;

const configSchema = z.looseObject({
  eos_token: specialTokenSchema.default('</s>'),
  pad_token: specialTokenSchema.default('<pad>'),
});

const definitionSchema = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: z.number().int().min(0), content: z.string() })).default([]),
  model: z.looseObject({
    // Old files do not say it; others have vocabularies of another structure.
    type: z.literal('Unigram').default('Unigram'),
    unk_id: z.number().int().min(0),
    vocab: z.array(z.tuple([z.string(), z.number()])).min(1),
  }),
});

/**
 * Reads a T5 tokenizer of a model's directory.
 *
 * @param folder relative to the directory.
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readT5TokenizerFiles(directory: string, folder: string): Promise<T5TokenizerFiles> {
  const vocabularyFile = `${folder}/tokenizer.json`;
  const { config, fileOf } = await readTokenizerConfig(directory, folder, configSchema);
  const json = await unlessMissing(readModelJson(directory, vocabularyFile));
  if (json === undefined) throw modelFileError(vocabularyFile, await whatIsMissing(directory, folder));
  const definition = checkModelJson(vocabularyFile, json, definitionSchema);
  const ids = new Map(definition.model.vocab.map(([piece], id) => [piece, id]));
  for (const { content, id } of definition.added_tokens) ids.set(content, id);
  const idOf = (token: string, field: string): number => {
    const id = ids.get(token);
    if (id !== undefined) return id;
    throw modelFileError(fileOf(field), `${field}: ${JSON.stringify(token)} is not in the vocabulary`);
  };
  return {
    kind: 't5',
    definition,
    endId: idOf(config.eos_token, 'eos_token'),
    padId: idOf(config.pad_token, 'pad_token'),
    highestId: Math.max(definition.model.vocab.length - 1, ...definition.added_tokens.map(({ id }) => id)),
    folder,
    vocabularyFile,
    maxTokens,
  };
}

async function whatIsMissing(directory: string, folder: string): Promise<string> {
  try {
    await access(join(directory, folder, 'spiece.model'));
  } catch {
    return 'is missing';
  }
  return 'is missing; spiece.model beside it is not read. transformers makes the one from the other: T5TokenizerFast.from_pretrained(folder).save_pretrained(folder)';
}
