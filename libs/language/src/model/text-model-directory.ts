/**
 * A text model on disk, in the layout of Optimum and transformers.js. Reads only its small files, without ONNX Runtime.
 */
import { createHash } from 'node:crypto';
import { access, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { autoDtypes, type Device, type DtypeChoice, type ModelDtype } from '@darkroom/core';
import { createTextCodec, encodeTextCodecFiles, type TextCard, type TextCodec } from '@darkroom/kinds';
import {
  checkModelId,
  modelFileError,
  readModelJson,
  readModelText,
  unlessMissing,
} from '@darkroom/runtime/model-file';
import { readTextModelConfig, type TextModelConfig } from './text-model-config.ts';

/** Everything that a pipeline needs to load a model. */
export interface TextModelDirectory {
  /** Absolute path. */
  readonly path: string;
  /** Path relative to `path`. */
  readonly graph: string;
  readonly config: TextModelConfig;
  /** The card, as far as files tell; `deterministic` is known only once the model is loaded. */
  readonly card: TextCard;
  readonly codec: TextCodec;
  /** The bytes whose hash is `card.codec`; the API builds the same codec from them. */
  readonly codecDocument: Uint8Array;
}

export interface ReadTextModelOptions {
  /** The model's id in requests; default: the directory's name. */
  id?: string;
  /**
   * Which file of weights to use; default: the first present one, in the order of `autoDtypes` for the first device.
   */
  dtypes?: DtypeChoice;
  /** Devices to run on, in order of preference. */
  devices?: readonly Device[];
  /** Capacity in tokens; limits prompt and text together. */
  maxTokens?: number;
}

/** Returns true if the directory holds a text model; an image model has a model_index.json. */
export async function isTextModel(path: string): Promise<boolean> {
  const [isText, isImage] = await Promise.all(
    ['config.json', 'model_index.json'].map((file) => isReadable(join(path, file))),
  );
  return isText === true && isImage !== true;
}

/** File names of graphs, in the folder `onnx`. */
export const textDtypeFileNames: Readonly<Record<ModelDtype, string>> = {
  int8: 'model_int8.onnx',
  fp32: 'model.onnx',
  q4: 'model_q4.onnx',
  fp16: 'model_fp16.onnx',
};

/**
 * Reads a model's directory.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field that is missing, invalid or not supported.
 */
export async function readTextModelDirectory(
  path: string,
  { id, dtypes = { all: 'auto', parts: {} }, devices, maxTokens = Infinity }: ReadTextModelOptions = {},
): Promise<TextModelDirectory> {
  const directory = resolve(path);
  const [read, codecDocument, graph] = await Promise.all([
    readTextModelConfig(directory),
    readCodecFiles(directory),
    findGraph(directory, dtypes, devices?.[0]),
  ]);
  const { mtimeMs } = await stat(join(directory, 'config.json'));
  const codec = createTextCodec(codecDocument);
  const maxModelTokens = Math.min(read.maxModelTokens, maxTokens);
  const config = { ...read, maxModelTokens, endIds: [...new Set([...read.endIds, ...codec.endIds])] };
  checkVocabulary(codec, config);
  const card = createTextCard({ id: checkModelId(id ?? basename(directory)), mtimeMs, config, codec, codecDocument });
  return { path: directory, graph, config, card, codec, codecDocument };
}

interface CreateTextCardOptions {
  id: string;
  /** Modification time of config.json. */
  mtimeMs: number;
  config: TextModelConfig;
  codec: TextCodec;
  codecDocument: Uint8Array;
}

function createTextCard({ id, mtimeMs, config, codec, codecDocument }: CreateTextCardOptions): TextCard {
  const { mode, maxModelTokens, defaults, block } = config;
  return {
    id,
    created: Math.floor(mtimeMs / 1000),
    ownedBy: 'darkroom',
    kind: 'text',
    pipeline: mode === 'autoregressive' ? 'AutoregressivePipeline' : 'BlockDiffusionPipeline',
    mode,
    maxModelTokens,
    vocabularySize: Math.min(codec.vocabularySize, config.vocabularySize),
    codec: createHash('sha256').update(codecDocument).digest('hex'),
    hasChatTemplate: codec.hasChatTemplate,
    hasTools: 'markup' in codec.calls,
    defaults,
    ...(block && { block: { size: block.size, confidenceThreshold: block.confidenceThreshold } }),
    deterministic: { is: true },
  };
}

async function readCodecFiles(directory: string): Promise<Uint8Array> {
  const [tokenizer, config = {}, chatTemplate] = await Promise.all([
    readModelJson(directory, 'tokenizer.json'),
    unlessMissing(readModelJson(directory, 'tokenizer_config.json')),
    unlessMissing(readModelText(directory, 'chat_template.jinja')),
  ]);
  return encodeTextCodecFiles({ tokenizer, config, chatTemplate });
}

async function findGraph(directory: string, { all: dtype, parts }: DtypeChoice, device?: Device): Promise<string> {
  const [part] = Object.keys(parts);
  if (part !== undefined) throw modelFileError('onnx', `has no ${part}: a text model is one graph`);
  const there = await listTextDtypes(directory, device);
  const found = dtype === 'auto' ? there[0] : there.find((name) => name === dtype);
  if (found !== undefined) return `onnx/${textDtypeFileNames[found]}`;
  if (there.length === 0) throw modelFileError('onnx', `has none of ${Object.values(textDtypeFileNames).join(', ')}`);
  const instead = there.map((name) => textDtypeFileNames[name]).join(', ');
  throw modelFileError('onnx', `has no graph in ${dtype}; there is ${instead}`);
}

/** Returns the dtypes that a model has a graph file for, in the order of preference of `auto`. */
export async function listTextDtypes(directory: string, device?: Device): Promise<ModelDtype[]> {
  const dtypes = autoDtypes(device);
  const files = dtypes.map((dtype) => join(directory, 'onnx', textDtypeFileNames[dtype]));
  const isThere = await Promise.all(files.map(isReadable));
  return dtypes.filter((_, at) => isThere[at]);
}

/** Max number of logits without a token, which some models have for padding. */
const mostPadding = { tokens: 1024, share: 0.1 };

function checkVocabulary(codec: TextCodec, config: TextModelConfig): void {
  const { vocabularySize } = codec;
  const missing = config.vocabularySize - vocabularySize;
  // Gemma 3's text models have a special token for images without a logit.
  const tooMany = Array.from({ length: Math.max(0, -missing) }, (_, at) => config.vocabularySize + at);
  if (
    !tooMany.every((id) => codec.isSpecial(id)) ||
    missing > Math.max(mostPadding.tokens, mostPadding.share * config.vocabularySize)
  ) {
    const problem = `has ${vocabularySize} tokens, which does not match config.json: vocab_size ${config.vocabularySize}`;
    throw modelFileError('tokenizer.json', problem);
  }
  for (const { file, ids } of config.endIdSources) {
    const unknown = ids.find((id) => id >= Math.min(vocabularySize, config.vocabularySize));
    if (unknown !== undefined) throw modelFileError(file, `eos_token_id: ${unknown} is not a token of tokenizer.json`);
  }
}

function isReadable(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
