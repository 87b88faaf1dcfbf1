/**
 * A text model as it lies on disk: the layout of Optimum and transformers.js. Reads the small files only, so it is quick
 * and needs no ONNX Runtime.
 */
import { createHash } from 'node:crypto';
import { access, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { type DtypeChoice, DarkroomError, isModelId, type ModelDtype, modelDtypes } from '@darkroom/core';
import { createTextCodec, encodeTextCodecFiles, type TextCard, type TextCodec } from '@darkroom/kinds';
import { modelFileError, readModelJson, readModelText } from './model-file.ts';
import { readTextModelConfig, type TextModelConfig } from './text-model-config.ts';

/** All that a pipeline needs to load a model. */
export interface TextModelDirectory {
  /** Absolute. */
  readonly path: string;
  /** Relative to the path. */
  readonly graph: string;
  readonly config: TextModelConfig;
  /** As far as the files tell; that rows keep their bytes is known once it is loaded. */
  readonly card: TextCard;
  readonly codec: TextCodec;
  /** The bytes that `card.codec` names, for the door to make the same codec from. */
  readonly codecDocument: Uint8Array;
}

export interface ReadTextModelOptions {
  /** What requests call the model; the directory's name if absent. */
  id?: string;
  /** Which file of weights; by default the first there is of int8, fp32, q4 and fp16. */
  dtypes?: DtypeChoice;
  /** Tokens that there is room for: no text is longer with its prompt. */
  maxTokens?: number;
}

/** Whether a directory holds a model of text: one of pictures has a model_index.json. */
export async function isTextModel(path: string): Promise<boolean> {
  const [isText, isPicture] = await Promise.all(
    ['config.json', 'model_index.json'].map((file) => isReadable(join(path, file))),
  );
  return isText === true && isPicture !== true;
}

/** The names of graphs, in the folder `onnx`. */
export const textDtypeFileNames: Readonly<Record<ModelDtype, string>> = {
  int8: 'model_int8.onnx',
  fp32: 'model.onnx',
  q4: 'model_q4.onnx',
  fp16: 'model_fp16.onnx',
};

/**
 * Reads a model's directory.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field that is missing, wrong or not supported.
 */
export async function readTextModelDirectory(
  path: string,
  { id, dtypes = { all: 'auto', parts: {} }, maxTokens = Infinity }: ReadTextModelOptions = {},
): Promise<TextModelDirectory> {
  const directory = resolve(path);
  const [read, codecDocument, graph] = await Promise.all([
    readTextModelConfig(directory),
    readCodecFiles(directory),
    findGraph(directory, dtypes),
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
  /** When the directory was written. */
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
    readModelJson(directory, 'tokenizer_config.json'),
    readModelText(directory, 'chat_template.jinja'),
  ]);
  if (tokenizer === undefined) throw modelFileError('tokenizer.json', 'is missing');
  return encodeTextCodecFiles({ tokenizer, config, chatTemplate });
}

async function findGraph(directory: string, { all: dtype, parts }: DtypeChoice): Promise<string> {
  const [part] = Object.keys(parts);
  if (part !== undefined) throw modelFileError('onnx', `has no ${part}: a text model is one graph`);
  const there = await listTextDtypes(directory);
  const found = dtype === 'auto' ? there[0] : there.find((name) => name === dtype);
  if (found !== undefined) return `onnx/${textDtypeFileNames[found]}`;
  if (there.length === 0) throw modelFileError('onnx', `has none of ${Object.values(textDtypeFileNames).join(', ')}`);
  const instead = there.map((name) => textDtypeFileNames[name]).join(', ');
  throw modelFileError('onnx', `has no graph in ${dtype}; there is ${instead}`);
}

/** The dtypes that a model has a graph in, by the names of the files, in the order in which `auto` takes them. */
export async function listTextDtypes(directory: string): Promise<ModelDtype[]> {
  const files = modelDtypes.map((dtype) => join(directory, 'onnx', textDtypeFileNames[dtype]));
  const isThere = await Promise.all(files.map(isReadable));
  return modelDtypes.filter((_, at) => isThere[at]);
}

/** Logits for ids of no token, which some models have for the sake of round numbers. */
const mostPadding = { tokens: 1024, share: 0.1 };

function checkVocabulary(codec: TextCodec, config: TextModelConfig): void {
  const { vocabularySize } = codec;
  const missing = config.vocabularySize - vocabularySize;
  // Gemma 3's models of text have a token for pictures, too, and no logit of it.
  const tooMany = Array.from({ length: Math.max(0, -missing) }, (_, at) => config.vocabularySize + at);
  if (
    !tooMany.every((id) => codec.isSpecial(id)) ||
    missing > Math.max(mostPadding.tokens, mostPadding.share * config.vocabularySize)
  ) {
    const problem = `has ${vocabularySize} tokens, and config.json says vocab_size ${config.vocabularySize}`;
    throw modelFileError('tokenizer.json', problem);
  }
  for (const { file, ids } of config.endIdsOf) {
    const unknown = ids.find((id) => id >= Math.min(vocabularySize, config.vocabularySize));
    if (unknown !== undefined) throw modelFileError(file, `eos_token_id: ${unknown} is not a token of tokenizer.json`);
  }
}

function checkModelId(id: string): string {
  if (isModelId(id)) return id;
  throw new DarkroomError(
    'model_unsupported',
    'language.read-model-directory',
    `${JSON.stringify(id)} cannot be a model's id: 1–64 characters of a–z, 0–9, ".", "_" and "-"`,
  );
}

function isReadable(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
