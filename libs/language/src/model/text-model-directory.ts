/**
 * A text model on disk, in the layout of Optimum and transformers.js. Reads only its small files, without ONNX Runtime.
 */
import { createHash } from 'node:crypto';
import { access, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { autoDtypes, type Device, type DtypeChoice, type ModelDtype } from '@darkroom/core';
import {
  createTextCodec,
  encodeTextCodecFiles,
  type ImageTokens,
  type TextCard,
  type TextCodec,
} from '@darkroom/kinds';
import {
  checkModelId,
  modelFileError,
  readModelJson,
  readModelText,
  unlessMissing,
} from '@darkroom/runtime/model-file';
import { type ImageConfig, imageModelTypes } from './image-config.ts';
import { readTextModelConfig, type TextModelConfig } from './text-model-config.ts';

/** Everything that a pipeline needs to load a model. */
export interface TextModelDirectory {
  /** Absolute path. */
  readonly path: string;
  /** Path relative to `path`. */
  readonly graph: string;
  /** Models that read images only: the graphs that create embeddings of images and of tokens. */
  readonly imageGraphs?: { readonly encoder: string; readonly embeddings: string };
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

/** Ends of the file names of graphs, by dtype. */
const dtypeSuffixes: Readonly<Record<ModelDtype, string>> = { int8: '_int8', fp32: '', q4: '_q4', fp16: '_fp16' };

/** Parts of a model that reads text only: one graph. */
const textParts = ['model'] as const;
/** Parts of a model that reads images, in the layout of transformers.js. */
const imageParts = ['decoder_model_merged', 'vision_encoder', 'embed_tokens'] as const;

/**
 * Returns the paths of a model's graphs: one, or decoder, image encoder and token embeddings.
 *
 * @param type `model_type` of its config.json.
 */
export function textGraphPaths(type: string, dtype: ModelDtype): readonly string[] {
  return partsOf(type).map((part) => graphPath(part, dtype));
}

function partsOf(type: string): readonly [string, ...string[]] {
  return imageModelTypes.includes(type) ? imageParts : textParts;
}

function graphPath(part: string, dtype: ModelDtype): string {
  return `onnx/${part}${dtypeSuffixes[dtype]}.onnx`;
}

/** Returns the dtype in the name of a graph. */
export function dtypeOfTextGraph(path: string): ModelDtype {
  const found = (['int8', 'q4', 'fp16'] as const).find((dtype) => path.endsWith(`${dtypeSuffixes[dtype]}.onnx`));
  return found ?? 'fp32';
}

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
  const [read, codecDocument] = await Promise.all([readTextModelConfig(directory), readCodecFiles(directory)]);
  const { graph, imageGraphs } = await findGraphs(directory, read.type, { dtypes, device: devices?.[0] });
  const { mtimeMs } = await stat(join(directory, 'config.json'));
  const codec = createTextCodec(codecDocument);
  const maxModelTokens = Math.min(read.maxModelTokens, maxTokens);
  const config = { ...read, maxModelTokens, endIds: [...new Set([...read.endIds, ...codec.endIds])] };
  checkVocabulary(codec, config);
  const card = createTextCard({ id: checkModelId(id ?? basename(directory)), mtimeMs, config, codec, codecDocument });
  return { path: directory, graph, ...(imageGraphs && { imageGraphs }), config, card, codec, codecDocument };
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
  const { mode, maxModelTokens, defaults, block, images } = config;
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
    ...(images && { images: imageTokensOf(images, codec) }),
    ...(block && { block: { size: block.size, confidenceThreshold: block.confidenceThreshold } }),
    deterministic: { is: true },
  };
}

function imageTokensOf({ tokenId, perTile, minImages, maxImages, tiling }: ImageConfig, codec: TextCodec): ImageTokens {
  if (tokenId >= codec.vocabularySize)
    throw modelFileError('config.json', `image_token_id: ${tokenId} is not a token of tokenizer.json`);
  const token = new TextDecoder().decode(codec.bytesOf(tokenId));
  return { token, tokenId, perTile, minImages, maxImages, ...(tiling && { tiling }) };
}

async function readCodecFiles(directory: string): Promise<Uint8Array> {
  const [tokenizer, config = {}, chatTemplate] = await Promise.all([
    readModelJson(directory, 'tokenizer.json'),
    unlessMissing(readModelJson(directory, 'tokenizer_config.json')),
    unlessMissing(readModelText(directory, 'chat_template.jinja')),
  ]);
  return encodeTextCodecFiles({ tokenizer, config, chatTemplate });
}

interface FindGraphOptions {
  readonly dtypes: DtypeChoice;
  readonly device: Device | undefined;
}

async function findGraphs(
  directory: string,
  type: string,
  { dtypes, device }: FindGraphOptions,
): Promise<Pick<TextModelDirectory, 'graph' | 'imageGraphs'>> {
  const parts = partsOf(type);
  const [chosen] = Object.keys(dtypes.parts);
  if (chosen !== undefined)
    throw modelFileError(
      'onnx',
      `has no ${chosen}: ${parts.length === 1 ? 'a text model is one graph' : 'its graphs have one dtype'}`,
    );
  const graphs: string[] = [];
  for (const part of parts) graphs.push(await findGraph(directory, part, { dtypes, device }));
  const [graph, encoder, embeddings] = graphs as [string, string?, string?];
  return { graph, ...(encoder !== undefined && embeddings !== undefined && { imageGraphs: { encoder, embeddings } }) };
}

async function findGraph(directory: string, part: string, { dtypes, device }: FindGraphOptions): Promise<string> {
  const { all: dtype } = dtypes;
  const there = await dtypesOf(directory, part, device);
  const found = dtype === 'auto' ? there[0] : there.find((name) => name === dtype);
  if (found !== undefined) return graphPath(part, found);
  const names = (there.length === 0 ? autoDtypes(device) : there)
    .map((name) => basename(graphPath(part, name)))
    .join(', ');
  throw modelFileError(
    'onnx',
    there.length === 0 ? `has none of ${names}` : `has no graph in ${dtype}; there is ${names}`,
  );
}

/**
 * Returns the dtypes that a model has graphs for, in the order of preference of `auto`.
 *
 * @param type `model_type` of its config.json.
 */
export function listTextDtypes(directory: string, type: string): Promise<ModelDtype[]> {
  return dtypesOf(directory, partsOf(type)[0]);
}

async function dtypesOf(directory: string, part: string, device?: Device): Promise<ModelDtype[]> {
  const dtypes = autoDtypes(device);
  const isThere = await Promise.all(dtypes.map((dtype) => isReadable(join(directory, graphPath(part, dtype)))));
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
