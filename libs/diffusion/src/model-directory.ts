/**
 * A model as it lies on disk: the diffusers ONNX layout, and our own darkroom.json for what that has no field for. Reads
 * the small files only, so it is quick and needs no ONNX Runtime.
 */
import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { DarkroomError, isModelId } from '@darkroom/core';
import type { ModelCard } from '@darkroom/core';
import { darkroomJsonSchema } from './darkroom-json.ts';
import type { DarkroomJson } from './darkroom-json.ts';
import { createModelCard } from './model-card-of-files.ts';
import { modelIndexSchema, unetConfigSchemas, vaeConfigSchema } from './model-configs.ts';
import type { UnetConfig } from './model-configs.ts';
import { checkModelJson, modelFileError, readModelJson, unlessMissing } from './model-file.ts';
import { findModelFile } from './model-variant.ts';
import type { ModelVariant } from './model-variant.ts';
import { pipelineClasses, pipelineFamilies, pipelineFolders } from './pipeline-classes.ts';
import type { PipelineClass } from './pipeline-classes.ts';
import { parseSchedulerConfig } from './schedulers/scheduler-config.ts';
import type { ParsedSchedulerConfig } from './schedulers/scheduler-config.ts';
import { readTextEncoderFiles } from './text-encoder-files.ts';
import type { TextEncoderFiles } from './text-encoder-files.ts';

/** From scaled latents z to RGB in 0…1: z · matrix + bias. */
export interface PreviewProjection {
  /** latent channels × 3. */
  readonly matrix: readonly (readonly [number, number, number])[];
  readonly bias: readonly [number, number, number];
}

/** The latents of a model, as its VAE has them. */
export interface LatentFacts {
  readonly channels: number;
  /** Pixels of the picture for one of the latents, each way. */
  readonly factor: number;
  /** Latents are divided by this, and `shiftFactor` added, before they are decoded. */
  readonly scalingFactor: number;
  readonly shiftFactor: number;
}

/** All that a pipeline needs to load a model. */
export interface ModelDirectory {
  /** Absolute. */
  readonly path: string;
  readonly card: ModelCard;
  readonly pipelineClass: PipelineClass;
  /** Absolute paths of the graphs. */
  readonly graphs: { readonly textEncoders: readonly string[]; readonly unet: string; readonly vaeDecoder: string };
  /** In the order of `graphs.textEncoders`, as many as the class has. */
  readonly textEncoders: readonly TextEncoderFiles[];
  readonly scheduler: ParsedSchedulerConfig;
  readonly latents: LatentFacts;
  /** Numbers that the text encoders together give for each token. */
  readonly embeddingWidth: number;
  /** Of the embedding of the guidance, where the UNet is told it; else undefined. */
  readonly guidanceWidth: number | undefined;
  /** Stable Diffusion XL: whether zeros stand for the embeddings of no negative prompt. */
  readonly zeroesEmptyNegative: boolean;
  /** undefined: the model gives no previews. */
  readonly preview: PreviewProjection | undefined;
}

export interface ReadModelDirectoryOptions {
  /** What requests call the model; the directory's name if absent. */
  id?: string;
  /** Which files of weights; by default the first there is of each part, see `findModelFile`. */
  variant?: ModelVariant;
}

/**
 * Reads a model's directory.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field that is missing, wrong or not supported.
 */
export async function readModelDirectory(
  path: string,
  { id, variant }: ReadModelDirectoryOptions = {},
): Promise<ModelDirectory> {
  const directory = resolve(path);
  const modelId = checkModelId(id ?? basename(directory));
  const index = await readConfig(directory, 'model_index.json', modelIndexSchema);
  const pipelineClass = findPipelineClass(index['_class_name']);
  const family = pipelineFamilies[pipelineClass];
  const [textEncoders, unet, vae, darkroom, scheduler, graphs, { mtimeMs }] = await Promise.all([
    readTextEncoders(directory, pipelineClass),
    readConfig(directory, 'unet/config.json', unetConfigSchemas[family]),
    readConfig(directory, 'vae_decoder/config.json', vaeConfigSchema),
    unlessMissing(readConfig(directory, 'darkroom.json', darkroomJsonSchema)).then((json) => json ?? {}),
    readScheduler(directory),
    findGraphs(directory, pipelineClass, variant),
    stat(join(directory, 'model_index.json')),
  ]);
  checkChannels(vae.latent_channels, unet.in_channels, darkroom);
  checkDynamicShift(scheduler, pipelineClass);
  checkWidths(textEncoders, unet);
  if (family === 'stable-diffusion-xl') checkTimeIds(textEncoders, unet);
  const factor = 2 ** (vae.block_out_channels.length - 1);
  const created = Math.floor(mtimeMs / 1000);
  const { maxTokens: maxPromptTokens } = textEncoders[0]!.tokenizer;
  return {
    path: directory,
    card: createModelCard({ id: modelId, created, pipelineClass, unet, factor, darkroom, scheduler, maxPromptTokens }),
    pipelineClass,
    graphs,
    textEncoders,
    scheduler,
    latents: {
      channels: vae.latent_channels,
      factor,
      scalingFactor: vae.scaling_factor,
      shiftFactor: vae.shift_factor ?? 0,
    },
    embeddingWidth: unet.cross_attention_dim,
    guidanceWidth: unet.time_cond_proj_dim ?? undefined,
    zeroesEmptyNegative: index['force_zeros_for_empty_prompt'],
    preview: darkroom.preview,
  };
}

async function readTextEncoders(directory: string, pipelineClass: PipelineClass): Promise<TextEncoderFiles[]> {
  const folders = pipelineFolders[pipelineClass].tokenizers;
  const encoders = await Promise.all(
    folders.map((folder) => readTextEncoderFiles(directory, folder.slice('tokenizer'.length))),
  );
  const { maxTokens } = encoders[0]!.tokenizer;
  const other = encoders.find(({ tokenizer }) => tokenizer.maxTokens !== maxTokens);
  if (other === undefined) return encoders;
  const { folder, maxTokens: otherTokens } = other.tokenizer;
  const problem = `model_max_length: is ${otherTokens}, expected ${maxTokens}, that of tokenizer/tokenizer_config.json`;
  throw modelFileError(`${folder}/tokenizer_config.json`, problem);
}

/** Texts are read by all encoders, and what they give lies side by side. */
function checkWidths(textEncoders: readonly TextEncoderFiles[], { cross_attention_dim: given }: UnetConfig): void {
  let expected = 0;
  for (const { width } of textEncoders) {
    if (width === undefined) return;
    expected += width;
  }
  if (expected === given) return;
  const configs = textEncoders.map((_, at) => `text_encoder${at === 0 ? '' : `_${at + 1}`}/config.json`).join(' and ');
  const problem = `cross_attention_dim: is ${given}, expected ${expected}, the hidden_size of ${configs}`;
  throw modelFileError('unet/config.json', problem);
}

/** The base model of SDXL has six. Its refiner has five, with a score in place of the target size. */
function checkTimeIds(textEncoders: readonly TextEncoderFiles[], unet: UnetConfig): void {
  const { addition_time_embed_dim: timeWidth = 0, projection_class_embeddings_input_dim: given } = unet;
  const { pooledWidth } = textEncoders[1]!;
  if (pooledWidth === undefined) throw modelFileError('text_encoder_2/config.json', 'projection_dim: is missing');
  const expected = 6 * timeWidth + pooledWidth;
  if (expected === given) return;
  const parts = `six time ids of ${timeWidth} and the projection_dim of text_encoder_2/config.json, ${pooledWidth}`;
  const problem = `projection_class_embeddings_input_dim: is ${given}, expected ${expected}: ${parts}`;
  throw modelFileError('unet/config.json', problem);
}

function checkChannels(latentChannels: number, inChannels: number, { preview }: DarkroomJson): void {
  if (inChannels !== latentChannels) {
    const expected = `${latentChannels}, the VAE's latent_channels`;
    throw modelFileError('unet/config.json', `in_channels: ${inChannels} is not supported; expected ${expected}`);
  }
  if (preview && preview.matrix.length !== latentChannels) {
    throw modelFileError('darkroom.json', `preview.matrix: must have ${latentChannels} rows, one a latent channel`);
  }
}

function checkDynamicShift({ config }: ParsedSchedulerConfig, pipelineClass: PipelineClass): void {
  if (config.flow?.useDynamicShifting !== true) return;
  // Which shift goes with a size is the pipeline's to say, and this one has none.
  const file = 'scheduler/scheduler_config.json';
  throw modelFileError(file, `use_dynamic_shifting true is not supported by ${pipelineClass}`);
}

function checkModelId(id: string): string {
  if (isModelId(id)) return id;
  throw new DarkroomError({
    code: 'model_unsupported',
    op: 'diffusion.read-model-directory',
    message: `${JSON.stringify(id)} cannot be a model's id: 1–64 characters of a–z, 0–9, ".", "_" and "-"`,
  });
}

function findPipelineClass(className: string): PipelineClass {
  const found = pipelineClasses.find((candidate) => candidate === className);
  if (found !== undefined) return found;
  const supported = pipelineClasses.join(', ');
  throw modelFileError('model_index.json', `_class_name: ${className} is not supported; supported are ${supported}`);
}

async function readConfig<Output>(
  directory: string,
  file: string,
  schema: Parameters<typeof checkModelJson<Output>>[2],
): Promise<Output> {
  return checkModelJson(file, await readModelJson(directory, file), schema);
}

async function readScheduler(directory: string): Promise<ParsedSchedulerConfig> {
  const file = 'scheduler/scheduler_config.json';
  const json = await readModelJson(directory, file);
  try {
    return parseSchedulerConfig(json);
  } catch (error) {
    throw modelFileError(file, (error as Error).message, error);
  }
}

async function findGraphs(
  directory: string,
  pipelineClass: PipelineClass,
  variant: ModelVariant | undefined,
): Promise<ModelDirectory['graphs']> {
  const find = async (part: string) => join(directory, await findModelFile(directory, part, variant));
  const encoders = pipelineFolders[pipelineClass].graphs.filter((part) => part.startsWith('text_encoder'));
  const [unet, vaeDecoder, ...textEncoders] = await Promise.all(['unet', 'vae_decoder', ...encoders].map(find));
  return { textEncoders, unet: unet!, vaeDecoder: vaeDecoder! };
}
