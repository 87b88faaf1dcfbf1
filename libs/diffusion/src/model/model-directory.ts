/**
 * A model as it lies on disk: the diffusers ONNX layout, and our own darkroom.json for what that has no field for. Reads
 * the small files only, so it is quick and needs no ONNX Runtime.
 */
import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { DarkroomError, dtypeChoiceText, dtypeOfPart, isModelId } from '@darkroom/core';
import type { DtypeChoice, ModelPart } from '@darkroom/core';
import type { PictureCard } from '@darkroom/kinds';
import { z } from 'zod';
import { readCogView4Facts } from './facts/cogview4-facts.ts';
import { type DarkroomJson, darkroomJsonSchema } from './darkroom-json.ts';
import type { DenoiserFacts } from './facts/denoiser-facts.ts';
import { readFactsOfGraphs } from './facts/facts-of-graphs.ts';
import { type LatentFacts, readLatentFacts } from './facts/latent-facts.ts';
import { findModelFile, findVaeEncoderFile } from './find-model-file.ts';
import { type FinishingFiles, readFinishing, type SafetyCheckerChoice } from './finishing-files.ts';
import { type ModelLoras, readModelLoras } from '../loras/model-loras.ts';
import { createModelCard } from './model-card-of-files.ts';
import { modelFileError, readModelConfig, readModelJson, unlessMissing } from './model-file.ts';
import {
  classesOf2022,
  familiesWithInpaintingUnets,
  foldersOf,
  pipelineClasses,
  pipelineFamilies,
  pipelineFolders,
  takenByFamilies,
} from './pipeline-classes.ts';
import type { PipelineClass, PipelineFamily, PipelineFolders } from './pipeline-classes.ts';
import { type ParsedSchedulerConfig, parseSchedulerConfig } from '../schedulers/config/parse-scheduler-config.ts';
import { readStableDiffusion3Facts } from './facts/stable-diffusion-3-facts.ts';
import { readTextEncoderFiles, type TextEncoderFiles } from './facts/text-encoder-files.ts';
import { readUnetFacts } from './facts/unet-facts.ts';
import type { ClipImageSettings } from '../safety/clip-image.ts';

/** From scaled latents z to RGB in 0…1: z · matrix + bias. */
export interface PreviewProjection {
  /** latent channels × 3. */
  readonly matrix: readonly (readonly [number, number, number])[];
  readonly bias: readonly [number, number, number];
}

/** Absolute paths of a model's graphs. */
export interface ModelGraphFiles extends FinishingFiles {
  readonly textEncoders: readonly string[];
  readonly denoiser: string;
  readonly vaeDecoder: string;
  /** Absent where the model cannot start from a picture. */
  readonly vaeEncoder?: string;
}

/** All that a pipeline needs to load a model. */
export interface ModelDirectory {
  /** Absolute. */
  readonly path: string;
  readonly card: PictureCard;
  readonly pipelineClass: PipelineClass;
  /** Those that are read, relative to the path. */
  readonly folders: PipelineFolders;
  readonly graphs: ModelGraphFiles;
  /** In the order of `graphs.textEncoders`, as many as the model has. */
  readonly textEncoders: readonly TextEncoderFiles[];
  readonly scheduler: ParsedSchedulerConfig;
  readonly latents: LatentFacts;
  readonly denoiser: DenoiserFacts;
  /** Stable Diffusion XL: whether zeros stand for the embeddings of no negative prompt. */
  readonly zeroesEmptyNegative: boolean;
  readonly loras: ModelLoras;
  /** undefined: the model gives no previews. */
  readonly preview: PreviewProjection | undefined;
  /** How pictures are made ready for the safety checker, where there is one. */
  readonly clipImage: ClipImageSettings | undefined;
}

export interface ReadModelDirectoryOptions {
  /** What requests call the model; the directory's name if absent. */
  id?: string | undefined;
  /** Which files of weights; by default the first there is of each part, see `findModelFile`. */
  dtypes?: DtypeChoice | undefined;
  /** What is done with the safety checker of a model that has one; `auto` by default. */
  safetyChecker?: SafetyCheckerChoice | undefined;
}

const indexSchema = z.looseObject({
  _class_name: z.string(),
  force_zeros_for_empty_prompt: z.boolean().default(true),
});

/**
 * Reads a model's directory.
 *
 * @throws DarkroomError `model_unsupported` naming the file and the field that is missing, wrong or not supported.
 */
export async function readModelDirectory(
  path: string,
  { id, dtypes = { all: 'auto', parts: {} }, safetyChecker = 'auto' }: ReadModelDirectoryOptions = {},
): Promise<ModelDirectory> {
  const directory = resolve(path);
  const modelId = checkModelId(id ?? basename(directory));
  const index = await readModelConfig(directory, 'model_index.json', indexSchema);
  const pipelineClass = findPipelineClass(index['_class_name']);
  const folders = await findFolders(directory, pipelineClass, index);
  const [textEncoders, darkroom, scheduler, needed, finishing, { mtimeMs }] = await Promise.all([
    Promise.all(folders.tokenizers.map((tokenizer) => readTextEncoderFiles(directory, tokenizer))),
    unlessMissing(readModelConfig(directory, 'darkroom.json', darkroomJsonSchema)).then((json) => json ?? {}),
    readScheduler(directory, pipelineFamilies[pipelineClass]),
    findGraphs(directory, { folders, dtypes, family: pipelineFamilies[pipelineClass] }),
    readFinishing(directory, safetyChecker),
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
  });
  const parts = { folders, graphs, textEncoders, scheduler, latents, denoiser, loras };
  return {
    path: directory,
    card,
    pipelineClass,
    ...parts,
    zeroesEmptyNegative: index['force_zeros_for_empty_prompt'],
    preview: darkroom.preview,
    clipImage: finishing.clipImage,
  };
}

async function readFacts(
  directory: string,
  { pipelineClass, textEncoders, graphs }: Pick<ModelDirectory, 'pipelineClass' | 'textEncoders' | 'graphs'>,
): Promise<Pick<ModelDirectory, 'latents' | 'denoiser' | 'loras'>> {
  const loras = readModelLoras(directory, graphs.denoiser);
  if (await isOf2022(directory, pipelineClass)) return { ...readFactsOfGraphs(directory, graphs), loras };
  const latents = await readLatentFacts(directory);
  return { latents, denoiser: await denoiserReaders[pipelineFamilies[pipelineClass]](directory, textEncoders), loras };
}

/** Whether its exporter wrote no config.json. A model that lacks some of them has lost them. */
async function isOf2022(directory: string, pipelineClass: PipelineClass): Promise<boolean> {
  if (!classesOf2022.includes(pipelineClass)) return false;
  const configs = pipelineFolders[pipelineFamilies[pipelineClass]].graphs.map((part) =>
    join(directory, part, 'config.json'),
  );
  const isThere = await Promise.all(configs.map((config) => stat(config).then(Boolean, () => false)));
  return !isThere.includes(true);
}

type ReadDenoiser = (directory: string, textEncoders: readonly TextEncoderFiles[]) => Promise<DenoiserFacts>;

const denoiserReaders: Readonly<Record<PipelineFamily, ReadDenoiser>> = {
  'stable-diffusion': (directory, encoders) => readUnetFacts(directory, 'stable-diffusion', encoders),
  'latent-consistency': (directory, encoders) => readUnetFacts(directory, 'latent-consistency', encoders),
  'stable-diffusion-xl': (directory, encoders) => readUnetFacts(directory, 'stable-diffusion-xl', encoders),
  'stable-diffusion-3': readStableDiffusion3Facts,
  cogview4: readCogView4Facts,
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

/** Channels that a denoiser reads which was made for inpainting: of the latents, of the mask, and of the masked picture. */
export function inpaintingChannels({ channels }: Pick<LatentFacts, 'channels'>): number {
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
    const reason = 'the denoiser was made for inpainting and reads the picture, encoded';
    throw modelFileError(configFile, `in_channels: ${inChannels} is not supported without vae_encoder: ${reason}`);
  }
  if (inChannels !== latentChannels && !isForInpainting) {
    const expected = `${latentChannels}, the VAE's latent_channels`;
    throw modelFileError(configFile, `in_channels: ${inChannels} is not supported; expected ${expected}`);
  }
  if (preview && preview.matrix.length !== latentChannels) {
    throw modelFileError(
      'darkroom.json',
      `preview.matrix: has ${preview.matrix.length} rows, expected ${latentChannels}, one a latent channel`,
    );
  }
}

/** Which shift goes with a size is the pipeline's to say, and only these do. */
const familiesWithDynamicShift: readonly PipelineFamily[] = ['stable-diffusion-3', 'cogview4'];

function checkDynamicShift({ config }: ParsedSchedulerConfig, pipelineClass: PipelineClass): void {
  if (!config.useDynamicShifting) return;
  if (familiesWithDynamicShift.includes(pipelineFamilies[pipelineClass])) return;
  const file = 'scheduler/scheduler_config.json';
  throw modelFileError(file, `use_dynamic_shifting true is not supported by ${pipelineClass}`);
}

function checkModelId(id: string): string {
  if (isModelId(id)) return id;
  throw new DarkroomError(
    'model_unsupported',
    'diffusion.read-model-directory',
    `${JSON.stringify(id)} cannot be a model's id: 1–64 characters of a–z, 0–9, ".", "_" and "-"`,
  );
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
 * What `StableDiffusionPipeline` makes of any scheduler's config when it is loaded: those of its first models were saved
 * with defaults that they were not trained with.
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
    family,
  }: { folders: PipelineFolders; dtypes: DtypeChoice; family: PipelineFamily },
): Promise<Omit<ModelGraphFiles, keyof FinishingFiles>> {
  const takesPictures = takenByFamilies[family].length > 0;
  checkParts(dtypes, takesPictures ? [...parts, 'vae_encoder'] : parts);
  const find = async (part: ModelPart) =>
    join(directory, await findModelFile(directory, part, dtypeOfPart(dtypes, part)));
  const encoders = parts.filter((part) => part.startsWith('text_encoder'));
  const [denoiser, vaeDecoder, ...textEncoders] = await Promise.all(
    ([denoiserPart, 'vae_decoder', ...encoders] as const).map(find),
  );
  const vaeEncoder = takesPictures ? await findVaeEncoderFile(directory, dtypes) : undefined;
  return {
    textEncoders,
    denoiser: denoiser!,
    vaeDecoder: vaeDecoder!,
    ...(vaeEncoder !== undefined && { vaeEncoder: join(directory, vaeEncoder) }),
  };
}

/** A dtype for a part that there is none of was meant for another one. */
function checkParts(dtypes: DtypeChoice, parts: readonly ModelPart[]): void {
  const other = Object.keys(dtypes.parts).find((name) => parts.every((part) => part !== name));
  if (other === undefined) return;
  const problem = `MODEL_DTYPE is ${dtypeChoiceText(dtypes)}, expected of the parts only ${parts.join(', ')}`;
  throw modelFileError('model_index.json', `the model has no ${other}: ${problem}`);
}
