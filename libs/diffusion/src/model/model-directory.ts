/**
 * Reads a model's directory in the diffusers ONNX layout, plus darkroom.json for fields that diffusers lacks. Reads the
 * small files only, so it is quick and does not load ONNX Runtime.
 */
import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { dtypeChoiceText, dtypeOfPart } from '@darkroom/core';
import type { Device, DtypeChoice, ModelPart } from '@darkroom/core';
import type { ImageCard } from '@darkroom/kinds';
import { z } from 'zod';
import { readCogView4Config } from './config/cogview4-config.ts';
import { type DarkroomJson, darkroomJsonSchema } from './darkroom-json.ts';
import type { DenoiserConfig } from './config/denoiser-config.ts';
import { readGraphConfig } from './config/graph-config.ts';
import { type LatentConfig, readLatentConfig } from './config/latent-config.ts';
import { findPreviewProjection, type PreviewProjection } from './config/preview-projection.ts';
import { findModelFile, findVaeEncoderFile } from './find-model-file.ts';
import { type FinishingFiles, readFinishing, type SafetyCheckerChoice } from './finishing-files.ts';
import { type ModelLoras, readModelLoras } from '../loras/model-loras.ts';
import { createModelCard } from './model-card-of-files.ts';
import {
  checkModelId,
  modelFileError,
  readModelConfig,
  readModelJson,
  unlessMissing,
} from '@darkroom/runtime/model-file';
import {
  classesOf2022,
  familiesWithInpaintingUnets,
  foldersOf,
  pipelineClasses,
  pipelineFamilies,
  pipelineFolders,
  takenByFamilies,
} from './config/pipeline-classes.ts';
import type { PipelineClass, PipelineFamily, PipelineFolders } from './config/pipeline-classes.ts';
import { type ParsedSchedulerConfig, parseSchedulerConfig } from '../schedulers/config/parse-scheduler-config.ts';
import { readExamples } from './read-examples.ts';
import { readStableDiffusion3Config } from './config/stable-diffusion-3-config.ts';
import { readTextEncoderFiles, type TextEncoders } from './config/text-encoder-files.ts';
import { readUnetConfig } from './config/unet-config.ts';
import type { ClipImageSettings } from '../safety/clip-image.ts';

/** Absolute paths of a model's graphs. */
export interface ModelGraphFiles extends FinishingFiles {
  readonly textEncoders: readonly string[];
  readonly denoiser: string;
  readonly vaeDecoder: string;
  /** Absent if the model cannot start from an image. */
  readonly vaeEncoder?: string;
}

/** Everything that a pipeline needs to load a model. */
export interface ModelDirectory {
  /** Absolute path. */
  readonly path: string;
  readonly card: ImageCard;
  readonly pipelineClass: PipelineClass;
  /** The folders that are read, relative to the path. */
  readonly folders: PipelineFolders;
  readonly graphs: ModelGraphFiles;
  /** In the order of `graphs.textEncoders`, one per encoder. */
  readonly textEncoders: TextEncoders;
  readonly scheduler: ParsedSchedulerConfig;
  readonly latents: LatentConfig;
  readonly denoiser: DenoiserConfig;
  /** Stable Diffusion XL: true if an empty negative prompt is embedded as zeros. */
  readonly zeroesEmptyNegative: boolean;
  readonly loras: ModelLoras;
  /** undefined: the model has no previews. */
  readonly preview: PreviewProjection | undefined;
  /** Preprocessing of images for the safety checker; undefined without one. */
  readonly clipImage: ClipImageSettings | undefined;
}

export interface ReadModelDirectoryOptions {
  /** The model's id in requests; the directory's name if absent. */
  id?: string;
  /** The dtype of each part's graph; by default the first that exists, see `findModelFile`. */
  dtypes?: DtypeChoice;
  /** Devices in order of preference: `auto` chooses the dtype for the first. */
  devices?: readonly Device[];
  /** Use of the model's safety checker, if it has one; `auto` by default. */
  safetyChecker?: SafetyCheckerChoice;
}

const indexSchema = z.looseObject({
  _class_name: z.string(),
  force_zeros_for_empty_prompt: z.boolean().default(true),
});

/**
 * Reads a model's directory.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field that is missing, invalid or not supported.
 */
export async function readModelDirectory(
  path: string,
  options: ReadModelDirectoryOptions = {},
): Promise<ModelDirectory> {
  const { id, dtypes = { all: 'auto', parts: {} }, devices: [device] = [], safetyChecker = 'auto' } = options;
  const directory = resolve(path);
  const modelId = checkModelId(id ?? basename(directory));
  const index = await readModelConfig(directory, 'model_index.json', indexSchema);
  const pipelineClass = findPipelineClass(index['_class_name']);
  const folders = await findFolders(directory, pipelineClass, index);
  const [textEncoders, darkroom, scheduler, needed, finishing, { mtimeMs }] = await Promise.all([
    readTextEncoders(directory, folders),
    unlessMissing(readModelConfig(directory, 'darkroom.json', darkroomJsonSchema)).then((json) => json ?? {}),
    readScheduler(directory, pipelineFamilies[pipelineClass]),
    findGraphs(directory, { folders, dtypes, device, family: pipelineFamilies[pipelineClass] }),
    readFinishing(directory, { choice: safetyChecker, device }),
    stat(join(directory, 'model_index.json')),
  ]);
  const graphs = { ...needed, ...finishing.files };
  const { latents, denoiser, loras } = await readFacts(directory, { pipelineClass, textEncoders, graphs });
  checkChannels({ latents, denoiser, darkroom, pipelineClass, graphs });
  checkDynamicShift(scheduler, pipelineClass);
  const card = createModelCard({
    id: modelId,
    created: Math.floor(mtimeMs / 1000),
    pipelineClass,
    denoiser,
    factor: latents.factor,
    darkroom,
    scheduler,
    maxPromptTokens: Math.max(...textEncoders.map(({ tokenizer }) => tokenizer.maxTokens)),
    takes: graphs.vaeEncoder === undefined ? [] : takenByFamilies[pipelineFamilies[pipelineClass]],
    finishing: finishing.card,
    loras,
    examples: await readExamples(directory, darkroom),
  });
  const parts = { card, pipelineClass, folders, graphs, textEncoders, scheduler, latents, denoiser, loras };
  return {
    path: directory,
    ...parts,
    zeroesEmptyNegative: index['force_zeros_for_empty_prompt'],
    preview: darkroom.preview ?? findPreviewProjection(latents),
    clipImage: finishing.clipImage,
  };
}

/** Reads the text encoders, of which every pipeline has one at least. */
function readTextEncoders(directory: string, { tokenizers }: PipelineFolders): Promise<TextEncoders> {
  const files = tokenizers.map((tokenizer) => readTextEncoderFiles(directory, tokenizer));
  return Promise.all(files) as unknown as Promise<TextEncoders>;
}

async function readFacts(
  directory: string,
  { pipelineClass, textEncoders, graphs }: Pick<ModelDirectory, 'pipelineClass' | 'textEncoders' | 'graphs'>,
): Promise<Pick<ModelDirectory, 'latents' | 'denoiser' | 'loras'>> {
  const loras = readModelLoras(directory, graphs);
  if (await isExportOf2022(directory, pipelineClass)) return { ...readGraphConfig(directory, graphs), loras };
  const latents = await readLatentConfig(directory);
  return { latents, denoiser: await denoiserReaders[pipelineFamilies[pipelineClass]](directory, textEncoders), loras };
}

/**
 * Returns true if all config.json files are missing, as in exports of 2022. If only some are missing, the model is
 * damaged.
 */
async function isExportOf2022(directory: string, pipelineClass: PipelineClass): Promise<boolean> {
  if (!classesOf2022.includes(pipelineClass)) return false;
  const configs = pipelineFolders[pipelineFamilies[pipelineClass]].graphs.map((part) =>
    join(directory, part, 'config.json'),
  );
  const exists = await Promise.all(configs.map((config) => stat(config).then(Boolean, () => false)));
  return !exists.includes(true);
}

type ReadDenoiser = (directory: string, textEncoders: TextEncoders) => Promise<DenoiserConfig>;

const denoiserReaders: Readonly<Record<PipelineFamily, ReadDenoiser>> = {
  'stable-diffusion': (directory, encoders) => readUnetConfig(directory, 'stable-diffusion', encoders),
  'latent-consistency': (directory, encoders) => readUnetConfig(directory, 'latent-consistency', encoders),
  'stable-diffusion-xl': (directory, encoders) => readUnetConfig(directory, 'stable-diffusion-xl', encoders),
  'stable-diffusion-3': readStableDiffusion3Config,
  cogview4: readCogView4Config,
};

async function findFolders(
  directory: string,
  pipelineClass: PipelineClass,
  index: Readonly<Record<string, unknown>>,
): Promise<PipelineFolders> {
  const { optionalEncoder = '' } = pipelineFolders[pipelineFamilies[pipelineClass]];
  const hasOptionalEncoder = await stat(join(directory, optionalEncoder)).then(Boolean, () => false);
  return foldersOf(pipelineClass, { index, hasOptionalEncoder });
}

/**
 * Returns the input channels of an inpainting denoiser: those of the latents, of the mask and of the masked image.
 */
export function inpaintingChannels({ channels }: Pick<LatentConfig, 'channels'>): number {
  return channels + 1 + channels;
}

function checkChannels({
  latents,
  denoiser: { configFile, inChannels },
  darkroom: { preview },
  pipelineClass,
  graphs,
}: Pick<ModelDirectory, 'latents' | 'denoiser' | 'pipelineClass' | 'graphs'> & { darkroom: DarkroomJson }): void {
  const { channels: latentChannels } = latents;
  const isForInpainting =
    inChannels === inpaintingChannels(latents) && familiesWithInpaintingUnets.includes(pipelineFamilies[pipelineClass]);
  if (isForInpainting && graphs.vaeEncoder === undefined) {
    const reason = 'the denoiser was trained for inpainting and needs the encoded image';
    throw modelFileError(configFile, `in_channels: ${inChannels} is not supported without vae_encoder: ${reason}`);
  }
  if (inChannels !== latentChannels && !isForInpainting) {
    const expected = `${latentChannels}, the VAE's latent_channels`;
    throw modelFileError(configFile, `in_channels: ${inChannels} is not supported; expected ${expected}`);
  }
  if (preview && preview.matrix.length !== latentChannels) {
    throw modelFileError(
      'darkroom.json',
      `preview.matrix: has ${preview.matrix.length} rows, expected ${latentChannels}, one per latent channel`,
    );
  }
}

/** The shift for an image's size is computed by the pipeline, and only these families' pipelines do. */
const familiesWithDynamicShift: readonly PipelineFamily[] = ['stable-diffusion-3', 'cogview4'];

function checkDynamicShift({ config }: ParsedSchedulerConfig, pipelineClass: PipelineClass): void {
  if (!config.useDynamicShifting) return;
  if (familiesWithDynamicShift.includes(pipelineFamilies[pipelineClass])) return;
  const file = 'scheduler/scheduler_config.json';
  throw modelFileError(file, `use_dynamic_shifting true is not supported by ${pipelineClass}`);
}

function findPipelineClass(className: string): PipelineClass {
  const found = pipelineClasses.find((candidate) => candidate === className);
  if (found !== undefined) return found;
  const supported = pipelineClasses.join(', ');
  throw modelFileError('model_index.json', `_class_name: ${className} is not supported; supported are ${supported}`);
}

async function readScheduler(directory: string, family: PipelineFamily): Promise<ParsedSchedulerConfig> {
  const file = 'scheduler/scheduler_config.json';
  const json = await readModelJson(directory, file);
  try {
    const parsed = parseSchedulerConfig(json);
    return family === 'stable-diffusion' ? withoutOldDefaults(parsed) : parsed;
  } catch (error) {
    throw modelFileError(file, (error as Error).message, error);
  }
}

/**
 * Changes the config as `StableDiffusionPipeline` does on loading, whatever the scheduler: the first models were saved
 * with defaults that differ from their training.
 */
function withoutOldDefaults(parsed: ParsedSchedulerConfig): ParsedSchedulerConfig {
  const { config, defaultScheduler } = parsed;
  const clips = config.clipSample ?? defaultScheduler === 'ddim';
  return { ...parsed, config: { ...config, stepsOffset: 1, clipSample: clips ? false : config.clipSample } };
}

async function findGraphs(
  directory: string,
  {
    folders: { graphs: parts, denoiser: denoiserPart },
    dtypes,
    device,
    family,
  }: { folders: PipelineFolders; dtypes: DtypeChoice; device: Device | undefined; family: PipelineFamily },
): Promise<Omit<ModelGraphFiles, keyof FinishingFiles>> {
  const takesImages = takenByFamilies[family].length > 0;
  checkParts(dtypes, takesImages ? [...parts, 'vae_encoder'] : parts);
  const find = async (part: ModelPart) =>
    join(directory, await findModelFile(directory, part, { dtype: dtypeOfPart(dtypes, part), device }));
  const encoders = parts.filter((part) => part.startsWith('text_encoder'));
  const [denoiser, vaeDecoder, ...textEncoders] = await Promise.all([
    find(denoiserPart),
    find('vae_decoder'),
    ...encoders.map(find),
  ]);
  const vaeEncoder = takesImages ? await findVaeEncoderFile(directory, dtypes, device) : undefined;
  return {
    textEncoders,
    denoiser,
    vaeDecoder,
    ...(vaeEncoder !== undefined && { vaeEncoder: join(directory, vaeEncoder) }),
  };
}

/** A dtype for a part that the model lacks is an error: it was probably meant for another part. */
function checkParts(dtypes: DtypeChoice, parts: readonly ModelPart[]): void {
  const other = Object.keys(dtypes.parts).find((name) => parts.every((part) => part !== name));
  if (other === undefined) return;
  const problem = `MODEL_DTYPE is ${dtypeChoiceText(dtypes)}, expected of the parts only ${parts.join(', ')}`;
  throw modelFileError('model_index.json', `the model has no ${other}: ${problem}`);
}
