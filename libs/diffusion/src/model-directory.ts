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
import { modelIndexSchema, textEncoderConfigSchema, unetConfigSchema, vaeConfigSchema } from './model-configs.ts';
import { checkModelJson, modelFileError, readModelJson, unlessMissing } from './model-file.ts';
import { findModelFile } from './model-variant.ts';
import type { ModelVariant } from './model-variant.ts';
import { pipelineClasses } from './pipeline-classes.ts';
import type { PipelineClass } from './pipeline-classes.ts';
import { parseSchedulerConfig } from './schedulers/scheduler-config.ts';
import type { ParsedSchedulerConfig } from './schedulers/scheduler-config.ts';
import { checkTokenizerFits } from './tokenizer/check-tokenizer-fits.ts';
import { readTokenizerFiles } from './tokenizer/tokenizer-files.ts';
import type { TokenizerFiles } from './tokenizer/tokenizer-files.ts';

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
  readonly graphs: { readonly textEncoder: string; readonly unet: string; readonly vaeDecoder: string };
  readonly tokenizer: TokenizerFiles;
  readonly scheduler: ParsedSchedulerConfig;
  readonly latents: LatentFacts;
  /** Numbers that the text encoder gives for each token. */
  readonly embeddingWidth: number;
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
  const pipelineClass = findPipelineClass(await readConfig(directory, 'model_index.json', modelIndexSchema));
  const [textEncoder, unet, vae, darkroom, scheduler, tokenizer, graphs, { mtimeMs }] = await Promise.all([
    // Old exports have none; what it would have told is then seen when the graph is tried.
    unlessMissing(readConfig(directory, 'text_encoder/config.json', textEncoderConfigSchema)),
    readConfig(directory, 'unet/config.json', unetConfigSchema),
    readConfig(directory, 'vae_decoder/config.json', vaeConfigSchema),
    unlessMissing(readConfig(directory, 'darkroom.json', darkroomJsonSchema)).then((json) => json ?? {}),
    readScheduler(directory),
    readTokenizerFiles(directory),
    findGraphs(directory, variant),
    stat(join(directory, 'model_index.json')),
  ]);
  checkChannels(vae.latent_channels, unet.in_channels, darkroom);
  checkDynamicShift(scheduler, pipelineClass);
  if (textEncoder !== undefined) {
    checkTokenizerFits(tokenizer, textEncoder);
    checkWidth(textEncoder.hidden_size, unet.cross_attention_dim);
  }
  const factor = 2 ** (vae.block_out_channels.length - 1);
  const created = Math.floor(mtimeMs / 1000);
  return {
    path: directory,
    card: createModelCard({ id: modelId, created, pipelineClass, unet, factor, darkroom, scheduler, tokenizer }),
    pipelineClass,
    graphs,
    tokenizer,
    scheduler,
    latents: {
      channels: vae.latent_channels,
      factor,
      scalingFactor: vae.scaling_factor,
      shiftFactor: vae.shift_factor ?? 0,
    },
    embeddingWidth: unet.cross_attention_dim,
    preview: darkroom.preview,
  };
}

function checkWidth(hiddenSize: number, crossAttentionDim: number): void {
  if (hiddenSize === crossAttentionDim) return;
  const expected = `${hiddenSize}, the hidden_size of text_encoder/config.json`;
  throw modelFileError('unet/config.json', `cross_attention_dim: is ${crossAttentionDim}, expected ${expected}`);
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

async function findGraphs(directory: string, variant: ModelVariant | undefined): Promise<ModelDirectory['graphs']> {
  const [textEncoder, unet, vaeDecoder] = await Promise.all(
    ['text_encoder', 'unet', 'vae_decoder'].map((part) => findModelFile(directory, part, variant)),
  );
  return {
    textEncoder: join(directory, textEncoder!),
    unet: join(directory, unet!),
    vaeDecoder: join(directory, vaeDecoder!),
  };
}
