/**
 * Reads the files of CLIP, T5 and GLM tokenizers. tokenizer.json is complete, but the oldest CLIP models lack it. The
 * spiece.model that some repositories have instead is SentencePiece's own format and not supported.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { checkModelJson, modelFileError, readModelConfig, unlessMissing } from '@darkroom/runtime/model-file';
import { readClipDefinition, type TokenizerConfig, vocabularySchema } from './clip-definition.ts';

/** Kinds of tokenizers; they differ in truncation, padding and special tokens. */
export type TokenizerKind = 'clip' | 't5' | 'glm';

export interface TokenizerFiles {
  readonly kind: TokenizerKind;
  /** The contents of a tokenizer.json. */
  readonly definition: Readonly<Record<string, unknown>>;
  /** Token ids before and after each text. GLM's are in the definition instead. */
  readonly startIds: readonly number[];
  readonly endIds: readonly number[];
  /** The id of the padding token. */
  readonly padId: number;
  readonly highestId: number;
  /** Relative to the model's directory. */
  readonly folder: string;
  /** The file of the vocabulary, relative to the model's directory. */
  readonly vocabularyFile: string;
  /** Maximum number of tokens, including special tokens. */
  readonly maxTokens: number;
}

/** Maximum tokens of all of OpenAI's CLIP models. */
const clipTokens = 77;
/** Values from here up mean "no limit": transformers writes 10³⁰. */
const noMaxLength = 1e20;

/** A token in tokenizer_config.json: the text, or an object with the text. */
const token = z.union([z.string(), z.looseObject({ content: z.string() }).transform(({ content }) => content)]);

const fieldsSchema = z.record(z.string(), z.unknown());

const configSchemas: Readonly<Record<TokenizerKind, z.ZodType<TokenizerConfig>>> = {
  clip: z.looseObject({
    bos_token: token.default('<|startoftext|>'),
    eos_token: token.default('<|endoftext|>'),
    unk_token: token.default('<|endoftext|>'),
    pad_token: token.default('<|endoftext|>'),
    model_max_length: z
      .number()
      .transform((length) => (length >= noMaxLength ? clipTokens : length))
      .pipe(z.number().int().min(3).max(100_000))
      .default(clipTokens),
  }),
  // These pipelines cut at their `max_sequence_length`, not at `model_max_length`, which is for long texts.
  t5: z
    .looseObject({ eos_token: token.default('</s>'), pad_token: token.default('<pad>') })
    .transform((config) => ({ ...config, model_max_length: 256 })),
  glm: z
    .looseObject({ pad_token: token.default('<|endoftext|>') })
    .transform((config) => ({ ...config, model_max_length: 1024 })),
};

interface Definition {
  readonly [field: string]: unknown;
  readonly added_tokens: readonly { readonly id: number; readonly content: string }[];
  readonly model: { readonly vocab: Readonly<Record<string, number>> | readonly (readonly [string, number])[] };
}

const addedTokens = z.array(z.looseObject({ id: z.number().int().min(0), content: z.string() }));

const definitionSchemas: Readonly<Record<TokenizerKind, z.ZodType<Definition>>> = {
  clip: z.looseObject({ added_tokens: addedTokens.default([]), model: z.looseObject({ vocab: vocabularySchema }) }),
  t5: z.looseObject({
    added_tokens: addedTokens.default([]),
    model: z.looseObject({
      // Old files lack this field; other types have vocabularies of another structure.
      type: z.literal('Unigram').default('Unigram'),
      unk_id: z.number().int().min(0),
      vocab: z.array(z.tuple([z.string(), z.number()])).min(1),
    }),
  }),
  glm: z.looseObject({
    added_tokens: addedTokens,
    model: z.looseObject({ type: z.literal('BPE'), vocab: vocabularySchema }),
  }),
};

const specialTokens = {
  clip: { start: ['bos_token'], end: ['eos_token'] },
  t5: { start: [], end: ['eos_token'] },
  glm: { start: [], end: [] },
} as const;

/**
 * Reads a tokenizer from a model's directory.
 *
 * @param folder relative to the directory.
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readTokenizerFiles(
  directory: string,
  folder: string,
  kind: TokenizerKind,
): Promise<TokenizerFiles> {
  const { config, fileOf } = await readConfig(directory, folder, configSchemas[kind]);
  const { definition, vocabularyFile } = await readDefinition(directory, folder, { kind, config });
  const { vocab } = definition.model;
  const ids = new Map(Array.isArray(vocab) ? vocab.map(([piece], id) => [piece, id]) : Object.entries(vocab));
  for (const { content, id } of definition.added_tokens) ids.set(content, id);
  const idOf = (field: 'bos_token' | 'eos_token' | 'pad_token'): number => {
    const id = ids.get(config[field] ?? '');
    if (id !== undefined) return id;
    throw modelFileError(fileOf(field), `${field}: ${JSON.stringify(config[field])} is not in the vocabulary`);
  };
  return {
    kind,
    definition,
    startIds: specialTokens[kind].start.map(idOf),
    endIds: specialTokens[kind].end.map(idOf),
    padId: idOf('pad_token'),
    highestId: [...ids.values()].reduce((highest, id) => Math.max(highest, id), 0),
    folder,
    vocabularyFile,
    maxTokens: config.model_max_length!,
  };
}

/**
 * Reads tokenizer_config.json. Unless it lists all added tokens, as newer files do, special_tokens_map.json overrides
 * it, as in transformers: only there is the padding token of Stable Diffusion 2.
 *
 * @returns `fileOf`: the file that a field comes from.
 */
async function readConfig(directory: string, folder: string, schema: z.ZodType<TokenizerConfig>) {
  const configFile = `${folder}/tokenizer_config.json`;
  const mapFile = `${folder}/special_tokens_map.json`;
  const config = await readModelConfig(directory, configFile, fieldsSchema);
  const isComplete = config['added_tokens_decoder'] !== undefined;
  const tokens = isComplete ? undefined : await unlessMissing(readModelConfig(directory, mapFile, fieldsSchema));
  checkModelJson(configFile, config, schema);
  return {
    config: checkModelJson(mapFile, { ...config, ...tokens }, schema),
    fileOf: (field: string) => (Object.hasOwn(tokens ?? {}, field) ? mapFile : configFile),
  };
}

async function readDefinition(
  directory: string,
  folder: string,
  { kind, config }: { kind: TokenizerKind; config: TokenizerConfig },
): Promise<{ definition: Definition; vocabularyFile: string }> {
  const file = `${folder}/tokenizer.json`;
  const complete = (): Promise<Definition | undefined> =>
    unlessMissing(readModelConfig(directory, file, definitionSchemas[kind]));
  if (kind === 'clip') {
    try {
      const definition = await readClipDefinition(directory, folder, config);
      return { definition, vocabularyFile: `${folder}/vocab.json` };
    } catch (error) {
      // Newer versions of transformers save only tokenizer.json.
      const definition = await complete();
      if (definition === undefined) throw error;
      return { definition, vocabularyFile: file };
    }
  }
  const definition = await complete();
  if (definition !== undefined) return { definition, vocabularyFile: file };
  const hasSpiece = kind === 't5' && (await stat(join(directory, folder, 'spiece.model')).then(Boolean, () => false));
  const advice = 'transformers converts it: T5TokenizerFast.from_pretrained(folder).save_pretrained(folder)';
  throw modelFileError(file, hasSpiece ? `is missing; spiece.model beside it is not read. ${advice}` : 'is missing');
}
