import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dtypeChoiceText, dtypeOfPart } from '@darkroom/core';
import type { DtypeChoice, ModelPart } from '@darkroom/core';
import { dtypeFileNames, foldersOf, imageDtypes, pipelineClasses } from '@darkroom/diffusion/model-files';
import { exampleImagePattern, maxExampleBytes } from '@darkroom/diffusion/model-files';
import { pipelineFamilies, pipelineFolders, takenByFamilies } from '@darkroom/diffusion/model-files';
import type { ImageDtype, PipelineClass, PipelineFolders } from '@darkroom/diffusion/model-files';
import { CommandError } from '../command/command-error.ts';
import { download } from '../hub/download.ts';
import type { HubFile } from '../hub/hub-repo.ts';
import { type ChooseOptions, type ChosenFiles, isAboutTheModel, likelyWeightsOf } from './chosen-files.ts';

export interface ChooseFilesOptions {
  repo: string;
  files: readonly HubFile[];
  pipelineClass: PipelineClass;
  /** Content of model_index.json. */
  index: Readonly<Record<string, unknown>>;
  dtypes: DtypeChoice;
}

const topFiles = /^(?:model_index|darkroom)\.json$/;
const tokenizerFiles = /\.(?:json|txt|model)$/;

/**
 * Chooses files by the repository's model_index.json, which it downloads first: an unsupported pipeline is not worth a
 * download.
 *
 * @throws CommandError as `chooseFiles` does, or if the pipeline is not supported.
 */
export async function chooseImageFiles(options: ChooseOptions): Promise<ChosenFiles> {
  const { hub, files, directory, dtypes } = options;
  const { repo } = hub;
  const file = files.find(({ path }) => path === 'model_index.json')!;
  await download(file, { hub, directory });
  const index = parseModelIndex(await readFile(join(directory, file.path), 'utf8'));
  const { _class_name: className } = index;
  const pipelineClass = pipelineClasses.find((known) => known === className);
  if (pipelineClass !== undefined) return chooseFiles({ repo, files, pipelineClass, index, dtypes });
  const runs = `supported are ${pipelineClasses.join(', ')}`;
  throw new CommandError(`${repo} has the pipeline ${JSON.stringify(className)}; ${runs}.`);
}

function parseModelIndex(modelIndex: string): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(modelIndex) as Record<string, unknown> | null) ?? {};
  } catch {
    throw new CommandError('model_index.json of the repository is not JSON.');
  }
}

/**
 * Returns the files of a repository that its pipeline reads: one dtype per graph, no PyTorch weights, no safety
 * checker.
 *
 * @throws CommandError with the alternatives, if a graph is not available in the requested dtype.
 */
export function chooseFiles(options: ChooseFilesOptions): ChosenFiles {
  const { repo, files, pipelineClass, dtypes } = options;
  const { graphs: parts, tokenizers } = foldersIn(options);
  const other = Object.keys(dtypes.parts).find(
    (name) => name !== 'vae_encoder' && parts.every((part) => part !== name),
  );
  if (other !== undefined) {
    throw new CommandError(
      `--dtype names ${other}, expected of the parts of ${pipelineClass} only ${parts.join(', ')}`,
    );
  }
  const encoder = chooseVaeEncoder(options);
  const graphs = [
    ...parts.map((part) => chooseGraph(part, { repo, files, dtypes })),
    ...(encoder === undefined ? [] : [encoder]),
  ];
  const folders = encoder === undefined ? parts : [...parts, 'vae_encoder'];
  const configs = [...folders.map((part) => `${part}/config.json`), 'scheduler/scheduler_config.json'];
  const isSmall = ({ path, size }: HubFile): boolean =>
    topFiles.test(path) ||
    isAboutTheModel(path) ||
    (exampleImagePattern.test(path) && size <= maxExampleBytes) ||
    configs.includes(path) ||
    tokenizers.some(({ folder }) => isIn(folder, path) && tokenizerFiles.test(path));
  return {
    small: files.filter(isSmall),
    graphs,
    likelyWeights: likelyWeightsOf(graphs, files),
  };
}

function foldersIn({ files, pipelineClass, index }: ChooseFilesOptions): PipelineFolders {
  const { optionalEncoder } = pipelineFolders[pipelineFamilies[pipelineClass]];
  const hasOptionalEncoder = files.some(({ path }) => path.startsWith(`${optionalEncoder}/`));
  return foldersOf(pipelineClass, { index, hasOptionalEncoder });
}

/** Returns the image encoder if there is one, in the requested dtype or else the first available. */
function chooseVaeEncoder({ repo, files, dtypes, pipelineClass }: ChooseFilesOptions): HubFile | undefined {
  const part = 'vae_encoder';
  if (takenByFamilies[pipelineFamilies[pipelineClass]].length === 0) return undefined;
  if (dtypes.parts[part] !== undefined) return chooseGraph(part, { repo, files, dtypes });
  const there = imageDtypes.filter((dtype) => files.some(({ path }) => path === `${part}/${dtypeFileNames[dtype]}`));
  const dtype = there.find((each) => each === dtypes.all) ?? there[0];
  return dtype && chooseGraph(part, { repo, files, dtypes: { ...dtypes, parts: { [part]: dtype } } });
}

function isIn(folder: string, path: string): boolean {
  return path.startsWith(`${folder}/`) && !path.slice(folder.length + 1).includes('/');
}

function chooseGraph(
  part: ModelPart,
  { repo, files, dtypes }: Pick<ChooseFilesOptions, 'repo' | 'files' | 'dtypes'>,
): HubFile {
  const fileOf = (dtype: ImageDtype): HubFile | undefined =>
    files.find(({ path }) => path === `${part}/${dtypeFileNames[dtype]}`);
  const dtype = dtypeOfPart(dtypes, part);
  const tried = dtype === undefined ? imageDtypes : imageDtypes.filter((each) => each === dtype);
  const found = tried.map(fileOf).find((file) => file !== undefined);
  if (found !== undefined) return found;
  const there = imageDtypes.filter((each) => fileOf(each) !== undefined);
  if (there.length > 0) {
    const instead = dtypeChoiceText({ ...dtypes, parts: { ...dtypes.parts, [part]: there[0] } });
    throw new CommandError(`${repo} has no ${part} in ${dtype}, only in ${there.join(' and ')}: --dtype ${instead}`);
  }
  throw new CommandError(noOnnxMessage(repo, part, files));
}

function noOnnxMessage(repo: string, part: string, files: readonly HubFile[]): string {
  const expected = Object.values(dtypeFileNames).join(', ');
  const other = files.find(({ path }) => path.endsWith('.onnx'));
  if (other !== undefined) return `${repo} has none of ${expected} in ${part}/, as exports by Optimum do.`;
  return `${repo} has no ONNX files. Some repositories keep them in a branch (--revision onnx); of many models there is an ONNX export under another name; and tools/export makes one of the repository's PyTorch files`;
}
