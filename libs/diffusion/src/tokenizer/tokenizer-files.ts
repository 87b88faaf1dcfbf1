/**
 * The files of a CLIP tokenizer. Stable Diffusion 1.x has vocab.json and merges.txt only, so the tokenizer.json that
 * `@huggingface/tokenizers` wants is put together here as transformers' CLIPTokenizer does; a tokenizer saved by newer
 * versions, tokenizer.json alone, is taken as it is.
 */
import { z } from 'zod';
import { checkModelJson, modelFileError, readModelJson, readModelText, unlessMissing } from '../model/model-file.ts';
import { readTokenizerConfig, specialTokenSchema, type TokenizerFilesOf } from './tokenizer-config.ts';

/** What a CLIP tokenizer is made from. */
export interface TokenizerFiles extends TokenizerFilesOf<'clip'> {
  /** Token ids. */
  readonly startId: number;
  readonly endId: number;
}

/** What all of OpenAI's CLIPs read. */
const clipTokens = 77;
/** Above this, transformers says that it knows of no limit: it writes 10³⁰. */
const noMaxLength = 1e20;

const configSchema = z.looseObject({
  bos_token: specialTokenSchema.default('<|startoftext|>'),
  eos_token: specialTokenSchema.default('<|endoftext|>'),
  unk_token: specialTokenSchema.default('<|endoftext|>'),
  pad_token: specialTokenSchema.default('<|endoftext|>'),
  model_max_length: z
    .number()
    .transform((length) => (length >= noMaxLength ? clipTokens : length))
    .pipe(z.number().int().min(3).max(100_000))
    .default(clipTokens),
});

type TokenizerConfig = z.infer<typeof configSchema>;
type Vocabulary = Record<string, number>;

const vocabularySchema = z.record(z.string(), z.number().int().min(0));
const completeSchema = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: z.number().int().min(0), content: z.string() })).default([]),
  model: z.looseObject({ vocab: vocabularySchema }),
});

const contractions = "'s|'t|'re|'ve|'m|'ll|'d";

/**
 * Reads a tokenizer of a model's directory.
 *
 * @param folder relative to the directory.
 * @throws DarkroomError `model_unsupported` naming the file and the field.
 */
export async function readTokenizerFiles(directory: string, folder: string): Promise<TokenizerFiles> {
  const { config, fileOf } = await readTokenizerConfig(directory, folder, configSchema);
  const { definition, vocabulary, vocabularyFile } = await readDefinition(directory, folder, config);
  const idOf = (token: string, field: string): number => {
    const id = Object.hasOwn(vocabulary, token) ? vocabulary[token] : undefined;
    if (id !== undefined) return id;
    throw modelFileError(fileOf(field), `${field}: ${JSON.stringify(token)} is not in the vocabulary`);
  };
  return {
    kind: 'clip',
    definition,
    startId: idOf(config.bos_token, 'bos_token'),
    endId: idOf(config.eos_token, 'eos_token'),
    padId: idOf(config.pad_token, 'pad_token'),
    highestId: Object.values(vocabulary).reduce((highest, id) => Math.max(highest, id), 0),
    folder,
    vocabularyFile,
    maxTokens: config.model_max_length,
  };
}

async function readDefinition(
  directory: string,
  folder: string,
  config: TokenizerConfig,
): Promise<{ definition: Record<string, unknown>; vocabulary: Vocabulary; vocabularyFile: string }> {
  try {
    const vocabularyFile = `${folder}/vocab.json`;
    const vocabulary = checkModelJson(vocabularyFile, await readModelJson(directory, vocabularyFile), vocabularySchema);
    const mergesFile = `${folder}/merges.txt`;
    const merges = parseMerges(await readModelText(directory, mergesFile));
    checkMerges(merges, vocabulary, mergesFile);
    return { definition: createDefinition(vocabulary, merges, config), vocabulary, vocabularyFile };
  } catch (error) {
    const vocabularyFile = `${folder}/tokenizer.json`;
    const complete = await unlessMissing(readComplete(directory, vocabularyFile));
    if (complete === undefined) throw error;
    const added = complete.added_tokens.map(({ content, id }) => [content, id]);
    return {
      definition: complete,
      vocabulary: { ...complete.model.vocab, ...Object.fromEntries(added) },
      vocabularyFile,
    };
  }
}

async function readComplete(directory: string, file: string): Promise<z.infer<typeof completeSchema>> {
  return checkModelJson(file, await readModelJson(directory, file), completeSchema);
}

function checkMerges(merges: readonly string[][], vocabulary: Vocabulary, file: string): void {
  for (const merge of merges) {
    const token = merge.join('');
    if (Object.hasOwn(vocabulary, token)) continue;
    throw modelFileError(file, `makes ${JSON.stringify(token)}, which vocab.json has no id for`);
  }
}

function parseMerges(text: string): string[][] {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#version')).map((line) => line.split(' '));
}

function createDefinition(vocabulary: Vocabulary, merges: string[][], config: TokenizerConfig) {
  const special = new Set([config.bos_token, config.eos_token, config.unk_token, config.pad_token]);
  const escaped = [config.bos_token, config.eos_token].map((token) => token.replace(/[|\\{}()[\]^$+*?.]/gu, '\\$&'));
  return {
    version: '1.0',
    added_tokens: [...special]
      .filter((token) => Object.hasOwn(vocabulary, token))
      .map((content) => ({ id: vocabulary[content], content, ...plainToken })),
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'NFC' },
        { type: 'Replace', pattern: { Regex: '\\s+' }, content: ' ' },
        { type: 'Lowercase' },
      ],
    },
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        {
          type: 'Split',
          pattern: { Regex: `${escaped.join('|')}|${contractions}|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+` },
          behavior: 'Removed',
          invert: true,
        },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
      ],
    },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: config.unk_token,
      continuing_subword_prefix: '',
      end_of_word_suffix: '</w>',
      fuse_unk: false,
      vocab: vocabulary,
      merges,
    },
    post_processor: null,
    decoder: null,
  };
}

const plainToken = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
