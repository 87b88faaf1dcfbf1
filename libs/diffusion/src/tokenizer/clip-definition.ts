/**
 * Builds the tokenizer.json that `@huggingface/tokenizers` needs from vocab.json and merges.txt, as transformers'
 * CLIPTokenizer does: Stable Diffusion 1.x has only these files.
 */
import { z } from 'zod';
import { modelFileError, readModelConfig, readModelText } from '@darkroom/runtime/model-file';

export interface TokenizerConfig {
  bos_token?: string;
  eos_token?: string;
  unk_token?: string;
  pad_token: string;
  model_max_length?: number;
}

type Vocabulary = Readonly<Record<string, number>>;

export const vocabularySchema = z.record(z.string(), z.number().int().min(0));

const contractions = "'s|'t|'re|'ve|'m|'ll|'d";

/**
 * Builds the definition of a CLIP tokenizer. @throws DarkroomError `model_unsupported` naming the file that is missing
 * or does not fit.
 */
export async function readClipDefinition(directory: string, folder: string, config: TokenizerConfig) {
  const vocabulary = await readModelConfig(directory, `${folder}/vocab.json`, vocabularySchema);
  const mergesFile = `${folder}/merges.txt`;
  const merges = parseMerges(await readModelText(directory, mergesFile));
  checkMerges(merges, vocabulary, mergesFile);
  return createDefinition(vocabulary, merges, config);
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
  const { bos_token: start = '', eos_token: end = '', unk_token: unknown = '', pad_token: padding } = config;
  const special = new Set([start, end, unknown, padding]);
  const ids = new Map(Object.entries(vocabulary));
  const escaped = [start, end].map((token) => token.replace(/[|\\{}()[\]^$+*?.]/gu, '\\$&'));
  return {
    version: '1.0',
    added_tokens: [...special].flatMap((content) => {
      const id = ids.get(content);
      return id === undefined ? [] : [{ id, content, ...plainToken }];
    }),
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
      unk_token: unknown,
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
